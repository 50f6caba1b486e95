"""claude-agent-sdk: the program that it brings along runs its own tools."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from note import asked

url, model, prompt, _ = asked()
ENV = {
    "ANTHROPIC_BASE_URL": url,
    "ANTHROPIC_AUTH_TOKEN": "none",
    "ANTHROPIC_SMALL_FAST_MODEL": model,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}


async def run() -> None:
    options = ClaudeAgentOptions(model=model, permission_mode="bypassPermissions", env=ENV)
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)
            assert not message.is_error, message


asyncio.run(run())
