"""Ask a model, and go on with its answer."""

from toolspeak import AsyncUpstream, Client


def ask(upstream: str | AsyncUpstream = "") -> list[str]:
    """Return the answers to two questions of one conversation."""
    with Client(upstream) as client:
        first = client.chat("What is the capital of Norway?", max_tokens=200)
        second = client.chat(["What is the capital of Norway?", first.message, "And of Iceland?"])
    return [first.text, second.text]


if __name__ == "__main__":
    print("\n".join(ask()))
