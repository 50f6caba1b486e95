"""Let a model work on a task with a function until it is done, and watch it."""

from toolspeak import AsyncUpstream, Client, Ending, RunEvent, Status, ToolCallEnded, ToolCallRejected, tool

NOTES = ["buy milk", "call Ada"]


@tool(effect="reads")
def read_notes() -> list[str]:
    """Return all notes."""
    return NOTES


def show(event: RunEvent) -> None:
    """Print the calls of the run."""
    match event:
        case ToolCallEnded(name=name, text=text):
            print(f"{name}: {text}")
        case ToolCallRejected(name=name, text=text):
            print(f"{name} was rejected: {text}")
        case _:
            pass


def work(upstream: str | AsyncUpstream = "") -> Ending:
    """Return how the run ended."""
    with Client(upstream) as client:
        return client.run("How many notes are there?", tools=[read_notes], watch=show, rounds=5)


if __name__ == "__main__":
    ending = work()
    print(ending.text if ending.status is Status.DONE else f"{ending.status}: {ending.reason}")
