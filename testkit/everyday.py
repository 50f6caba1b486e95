"""Twenty everyday requests with one to three tools, as people word them and not as benchmarks do."""

from typing import Final

TOOLS: Final[dict[str, tuple[str, str]]] = {
    "get_weather": ("Get the current weather for a city.", "city"),
    "search_flights": ("Search for flights to a city.", "destination"),
    "get_news": ("Get the latest news about a topic.", "topic"),
    "open_website": ("Open a website in the browser.", "url"),
    "call_contact": ("Call somebody on the phone.", "name"),
    "get_sunset": ("Get the time of sunset for a city.", "city"),
    "find_restaurant": ("Find restaurants by cuisine.", "cuisine"),
    "get_definition": ("Look up what an acronym stands for.", "acronym"),
    "delete_file": ("Delete a file.", "filename"),
    "create_folder": ("Create a new folder.", "folder_name"),
    "lock_door": ("Lock a door of the house.", "door"),
    "start_robot": ("Start the vacuum cleaner in a room.", "room"),
    "get_score": ("Get the result of a team's last match.", "team"),
    "find_movie": ("Find out in which cinema a movie runs.", "movie"),
    "get_exchange_rate": ("Get the exchange rate of a currency.", "currency"),
    "lookup_customer": ("Look up a customer by number.", "customer_id"),
    "run_query": ("Run an SQL query on the database.", "sql"),
    "get_temperature": ("Read the thermometer of a room.", "room"),
    "book_hotel": ("Book a hotel room in a city.", "city"),
    "get_air_quality": ("Get the air quality of a city.", "city"),
}
REQUESTS: Final = (
    ("What is the weather in Oslo?", ("get_weather",), ("oslo",)),
    ("Are there any flights to Lisbon?", ("search_flights", "book_hotel"), ("lisbon",)),
    ("What's new about electric cars?", ("get_news",), ("electric cars",)),
    (
        "Open example.com for me.",
        ("open_website", "get_news"),
        ("example.com", "https://example.com", "http://example.com"),
    ),
    ("Call Maria.", ("call_contact",), ("maria",)),
    ("When does the sun go down in Rome today?", ("get_sunset", "get_weather"), ("rome",)),
    ("I feel like eating Thai tonight.", ("find_restaurant",), ("thai",)),
    ("What does NATO stand for?", ("get_definition",), ("nato",)),
    ("Delete old.log, please.", ("delete_file", "create_folder"), ("old.log",)),
    ("Make a folder called invoices.", ("create_folder", "delete_file"), ("invoices",)),
    ("Lock the front door.", ("lock_door", "start_robot"), ("front door", "front", "the front door")),
    ("The living room is dirty, please vacuum it.", ("start_robot",), ("living room", "the living room")),
    ("How did Arsenal play last weekend?", ("get_score", "get_news"), ("arsenal",)),
    ("Where can I watch Casablanca?", ("find_movie",), ("casablanca",)),
    ("What is the Swiss franc worth?", ("get_exchange_rate",), ("swiss franc", "chf", "franc", "swiss francs")),
    ("Show me customer 4711.", ("lookup_customer", "run_query"), ("4711",)),
    ("Run this query: SELECT count(*) FROM users", ("run_query",), ("select count(*) from users",)),
    ("How warm is it in the cellar?", ("get_temperature", "get_weather"), ("cellar", "the cellar")),
    ("I need a hotel in Prague.", ("book_hotel", "search_flights", "find_restaurant"), ("prague",)),
    ("Can I go jogging in Delhi, or is there too much smog?", ("get_air_quality", "get_weather"), ("delhi",)),
)
"""The words, the tools that are offered (the first one is right), and the accepted values of its only argument."""
