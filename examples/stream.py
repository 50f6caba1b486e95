"""Show text and calls while the model writes."""

from collections.abc import Iterator

from toolspeak import AsyncUpstream, CallStarted, Client, TextDelta


def get_time(city: str) -> str:
    """Say what time it is."""
    return f"noon in {city}"


def ask(upstream: str | AsyncUpstream = "") -> Iterator[str]:
    """Yield what there is to show, piece by piece."""
    with Client(upstream) as client:
        stream = client.stream("What time is it in Oslo?", tools=[get_time])
        for event in stream:
            if isinstance(event, TextDelta):
                yield event.text
            elif isinstance(event, CallStarted):
                yield f"[{event.name}]"
        yield f" ({stream.answer.usage.output_tokens} tokens)"


if __name__ == "__main__":
    for piece in ask():
        print(piece, end="", flush=True)
