"""Prose for texts about tools and about other subjects."""

from random import Random
from typing import Final

INTROS: Final = (
    "Here is what a call looks like:",
    "For example:",
    "The model then answers with something like this:",
    "A request for `{name}` is written as follows:",
    "In this format, you would write:",
    "Below is the exact syntax that the server expects.",
    "To use {name}, the assistant emits the block below.",
    "This is the output I got from the model, copied as is:",
    "The documentation gives this example of {name}:",
    "Suppose the user asks about {word}. The reply could be:",
    "Sure! The syntax is:",
    "The test fixture contains:",
    "So beantwortet das Modell die Frage:",
    "El formato es el siguiente:",
    "Voici un exemple :",
    "示例如下",
    "The file `fixtures/{name}.txt` holds the following text:",
    "Compare these two forms.",
    "What you pasted was:",
)
OUTROS: Final = (
    "That is all there is to it.",
    "Do you want me to run it?",
    "Note that the arguments must be valid JSON.",
    "The server parses this and runs `{name}`.",
    "Replace the values with your own.",
    "Everything after the closing marker is ignored.",
    "I have not run anything yet.",
    "Nothing was called here; it is only an illustration.",
    "The result comes back in the next message.",
    "Let me know if {name} behaves differently for you.",
    "You can pass more than one argument.",
    "As you can see, {name} takes {count} arguments.",
    "Das ist nur ein Beispiel.",
    "Eso es todo.",
    "以上です",
    "Older versions used another form (see the {word} chapter).",
)
SENTENCES: Final = (
    "The {word} was finished in {count} days.",
    "Most of the {word} goes through {name} before anything else happens.",
    "If x < {count} and y > 2, the loop ends early.",
    "We compared {name} with three other ways to do the same.",
    "Nobody remembers why the {word} has {count} parts.",
    "There is a known issue with {name} on slow networks.",
    "Tool calling lets a model ask for {word} instead of guessing.",
    "The schema says that {name} takes an object.",
    "It rained for {count} hours 🌧 and then the sun came out ☀️.",
    "See section [{count}] and the footnote[^1] for details.",
    "Read the [guide](https://example.com/{word}?a={count}) first.",
    "He said: “We will see.”",
    "The cost is about ${count}, or {count} % of the {word}.",
    "a[i] = b[{count} - i] holds for all i in [0, {count}).",
    "Die {word} ist {count} Jahre alt.",
    "La {word} tiene {count} partes.",
    "東京は今日も晴れです",
    "Погода сегодня хорошая",
    "الطقس جميل اليوم",
    "आज मौसम अच्छा है",
    "{name}() is slow when the {word} is cold.",
    "Call {name} only when you need it; otherwise answer directly.",
    "Generics such as Map<String, List<Integer>> are fine here.",
    "The arrow -> and the pipe | have no meaning in this place.",
    "1 << {count} is a power of two, and a <- b is an assignment in R.",
)
WORDS: Final = (
    *("report", "harbour", "parser", "garden", "schedule", "weather", "station", "library", "engine", "recipe"),
    *("invoice", "dataset", "bridge", "compiler", "orchestra", "battery", "glacier", "contract", "sensor", "novel"),
)
PEOPLE: Final = ("Ada", "Kofi", "Mei", "Lars", "Priya", "Tomás", "Yuki", "Olga", "Sam", "Nadia")


def filled(dice: Random, template: str, name: str) -> str:
    """Fill a template."""
    values = {"name": name, "word": dice.choice(WORDS), "count": str(dice.randint(2, 90))}
    for key, value in values.items():
        template = template.replace("{" + key + "}", value)
    return template


def intro(dice: Random, name: str) -> str:
    """Write what comes before an example."""
    return filled(dice, dice.choice(INTROS), name)


def outro(dice: Random, name: str) -> str:
    """Write what comes after an example."""
    return filled(dice, dice.choice(OUTROS), name)


def sentence(dice: Random, name: str) -> str:
    """Write one sentence."""
    return filled(dice, dice.choice(SENTENCES), name)


def paragraph(dice: Random, name: str, most: int = 4) -> str:
    """Write up to so many sentences."""
    return " ".join(sentence(dice, name) for _ in range(dice.randint(1, most)))


def stamp(dice: Random) -> str:
    """Write a time as logs do."""
    day, hour, minute, second = dice.randint(1, 28), dice.randint(0, 23), dice.randint(0, 59), dice.randint(0, 59)
    form = dice.choice(
        ("2025-03-{:02}T{:02}:{:02}:{:02}Z", "2025-03-{:02} {:02}:{:02}:{:02},123", "[{:02}/Mar {:02}:{:02}:{:02}]")
    )
    return form.format(day, hour, minute, second)
