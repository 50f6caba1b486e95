"""The objects of OpenAI Responses, the same in events and in whole bodies: the response and its output items."""

from testkit.grammar.seen import Notes, SeenCall
from testkit.grammar.shape import Obj, expect, fresh, json_object

_PREFIX = {
    "message": "msg_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
    "tool_search_call": "tsc_",
    "reasoning": "rs_",
}
_REASONS = frozenset({"max_output_tokens", "content_filter"})


def check_response(response: Obj, statuses: tuple[str, ...], notes: Notes) -> str:
    """Check all of a response but its items, note how it ended, and return its status."""
    response.ident("id", "resp_")
    response.one_of("object", ("response",))
    response.number("created_at")
    response.word("model")
    _check_echo(response)
    status = response.one_of("status", statuses)
    notes.stop = "" if status == "in_progress" else status
    _check_outcome(response, status, notes)
    return status


def check_item(item: Obj, statuses: frozenset[str], ids: set[str]) -> None:
    """Check one output item; its ids must be new."""
    kind = item.one_of("type", _PREFIX)
    fresh(item.ident("id", _PREFIX[kind]), ids, item.at("id"))
    if kind != "reasoning" or item.has("status"):
        item.one_of("status", statuses)
    if kind == "message":
        _check_message(item, final="in_progress" not in statuses)
    elif kind == "reasoning":
        _check_reasoning(item)
    else:
        fresh(item.ident("call_id"), ids, item.at("call_id"))
        _check_call(item, kind)


def note_item(item: Obj, notes: Notes) -> None:
    """Note a complete item."""
    kind = item.text("type")
    if kind == "message":
        for part in item.objs("content"):
            notes.text(part.text("text"))
    elif kind == "reasoning":
        parts = [part for key in ("summary", "content") if item.has(key) for part in item.objs(key)]
        seal = item.text("encrypted_content") if item.has("encrypted_content") else ""
        notes.reasoning("".join(part.text("text") for part in parts), seal)
    else:
        notes.call_began()
        if not (item.has("status") and item.text("status") == "incomplete"):  # cut off: begun, and never made
            notes.call(_seen_call(item, kind))


def _check_echo(response: Obj) -> None:
    response.flag("parallel_tool_calls")
    response.items("tools")
    if not isinstance(response.value("tool_choice"), str):
        response.obj("tool_choice")
    response.flag("store")
    if not isinstance(response.value("instructions"), str | list | None):
        response.text("instructions")
    for key in ("temperature", "top_p"):
        found = response.value(key)
        fits = found is None or (isinstance(found, int | float) and not isinstance(found, bool))
        expect(fits, f"{response.at(key)} is {found!r}, not a number or null")
    for key in ("metadata", "reasoning", "text"):
        if response.value(key) is not None:
            response.obj(key)
    for key in ("previous_response_id", "truncation"):
        if response.value(key) is not None:
            response.word(key)


def _check_outcome(response: Obj, status: str, notes: Notes) -> None:
    if status == "failed":
        error = response.obj("error")
        error.word("code")
        notes.error = error.word("message")
    else:
        response.null("error")
    if status == "incomplete":
        notes.stop = response.obj("incomplete_details").one_of("reason", _REASONS)
    else:
        response.null("incomplete_details")
    if status == "completed":  # Copilot fails on a completed response without any item
        expect(bool(response.items("output")), f"{response.at('output')} is empty")
    _check_usage(response, status, notes)


def _check_usage(response: Obj, status: str, notes: Notes) -> None:
    if status == "in_progress":
        response.null("usage")
    elif response.value("usage") is not None or status != "failed":
        notes.usage = _usage(response.obj("usage"))


def _usage(usage: Obj) -> tuple[int, int]:
    told, wrote = usage.number("input_tokens"), usage.number("output_tokens")
    expect(usage.number("total_tokens") == told + wrote, f"{usage.at('total_tokens')} is not the sum")
    usage.obj("input_tokens_details").number("cached_tokens")
    usage.obj("output_tokens_details").number("reasoning_tokens")
    return told, wrote


def _check_message(item: Obj, *, final: bool) -> None:
    item.one_of("role", ("assistant",))
    parts = item.objs("content")
    expect(bool(parts) or not final, f"{item.at('content')} is empty")
    for part in parts:
        part.one_of("type", ("output_text",))
        part.items("annotations")
        if "logprobs" in part.fields:
            part.items("logprobs")


def _check_reasoning(item: Obj) -> None:
    for part in item.objs("summary"):
        part.one_of("type", ("summary_text",))
    for part in item.objs("content") if item.has("content") else []:
        part.one_of("type", ("reasoning_text",))
    if item.has("encrypted_content"):
        item.word("encrypted_content")


def _check_call(item: Obj, kind: str) -> None:
    if kind == "tool_search_call":
        item.one_of("execution", ("client",))
        item.obj("arguments")
        return
    item.word("name")
    if "namespace" in item.fields:
        item.word("namespace")


def _seen_call(item: Obj, kind: str) -> SeenCall:
    call_id = item.text("call_id")
    if kind == "tool_search_call":
        return SeenCall(call_id, "tool_search", item.obj("arguments").fields, "tool_search")
    namespace = item.text("namespace") if "namespace" in item.fields else ""
    if kind == "custom_tool_call":
        return SeenCall(call_id, item.text("name"), item.text("input"), "custom", namespace)
    arguments = json_object(item.text("arguments"), item.at("arguments"))
    return SeenCall(call_id, item.text("name"), arguments, "function", namespace)
