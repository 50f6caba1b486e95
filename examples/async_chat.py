"""Ask several questions at a time on one event loop."""

import asyncio

from toolspeak import Answer, AsyncClient, AsyncUpstream


async def ask(upstream: str | AsyncUpstream = "") -> list[str]:
    """Return the answers in the order of the questions."""
    async with AsyncClient(upstream) as client, asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Answer]] = [
            group.create_task(client.chat(f"What is the capital of {country}?")) for country in ("Norway", "Iceland")
        ]
    return [task.result().text for task in tasks]


if __name__ == "__main__":
    print("\n".join(asyncio.run(ask())))
