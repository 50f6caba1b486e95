"""Conversations for guardrails that are tested without a turn."""

from collections.abc import Sequence

from toolspeak.engine.guardrails.guardrail import GuardedConversation
from toolspeak.ir.message import Message
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import compile_tools


def conversation(*messages: Message, tools: Sequence[Tool]) -> GuardedConversation:
    """Return a conversation with these tools."""
    request = Request("m", messages, tuple(tools))
    return GuardedConversation(request, compile_tools(tools), tuple(tools))
