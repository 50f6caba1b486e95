"""google-genai: generateContent, with functions that the SDK runs itself."""

from google.genai import types
from rows import MODEL, QUESTION, run


def chat(chats, weather):
    return chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[weather.get_weather]))


def whole(host, weather):
    return chat(host.client.chats, weather).send_message(QUESTION).text


def streamed(host, weather):
    chunks = chat(host.client.chats, weather).send_message_stream(QUESTION)
    return "".join(part.text or "" for chunk in chunks for part in chunk.candidates[0].content.parts or ())


async def async_whole(host, weather):
    return (await chat(host.client.aio.chats, weather).send_message(QUESTION)).text


async def async_streamed(host, weather):
    final = ""
    async for chunk in await chat(host.client.aio.chats, weather).send_message_stream(QUESTION):
        final += "".join(part.text or "" for part in chunk.candidates[0].content.parts or ())
    return final


run(
    "google-genai",
    ("google-genai",),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)
