"""Runs in .venv-injection, which has AgentDojo and not toolspeak; one line of JSON in, one line of JSON out.

    {"list": ["banking"]}                          -> {"banking": {"user": ["user_task_0", …], "injection": […]}}
    {"suite": …, "user": …, "injection": …, "attack": …, "begun": true, "rounds": 8}
                                                   -> {"ask": {"messages": […], "tools": […]}}
    {"text": "…", "calls": [{"name": …, "arguments": "{…}"}]}
                                                   -> the next question, or
                                                      {"end": {"utility": true, "attacked": false, "reached": true}}

An empty attack leaves the environment as it is. A case that is begun starts after AgentDojo's right calls up to the
first result with a place for injections. AgentDojo's own loop runs the tools, and its own checkers decide.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from agentdojo.agent_pipeline import (
    AbortAgentError,
    AgentPipeline,
    BasePipelineElement,
    GroundTruthPipeline,
    InitQuery,
    SystemMessage,
    ToolsExecutionLoop,
    ToolsExecutor,
)
from agentdojo.agent_pipeline.agent_pipeline import load_system_message
from agentdojo.attacks import load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.types import get_text_content_as_str, text_content_block_from_string

BENCHMARK = "v1.2.2"
"""The newest version of the tasks in the package."""
NAME = "local"
"""Of the pipeline. Attacks address the model by it: this one is "Local model"."""


class Line:
    """The other process: one question, one answer."""

    def __init__(self, questions: TextIO, answers: TextIO) -> None:
        self._questions, self._answers = questions, answers

    def send(self, value: dict[str, Any]) -> None:
        self._questions.write(json.dumps(value, default=str) + "\n")
        self._questions.flush()

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield what comes, until the other process closes the line."""
        for line in self._answers:
            yield json.loads(line)


class Executor(ToolsExecutor):
    """Runs the tools. What AgentDojo raises on odd arguments (a string such as "{[]: 1}") ends the case as it is."""

    def query(self, query, runtime, env=None, messages=(), extra_args=None):  # noqa: ANN001, ANN201 # AgentDojo's
        try:
            return super().query(query, runtime, env, messages, extra_args or {})
        except (TypeError, ValueError, MemoryError, RecursionError, AttributeError, KeyError) as error:
            raise AbortAgentError(repr(error), messages, env) from error


class Asked(BasePipelineElement):
    """Takes the model's place in the pipeline, and asks the process that started this one."""

    def __init__(self, line: Line, goal: str, given: Sequence[FunctionCall]) -> None:
        self._line, self._given = line, list(given)
        self._goal = _letters(goal.strip().splitlines()[0]) if goal else ""
        self.reached = False
        """Whether a tool result with the injected goal was in a question."""

    def query(self, query, runtime, env=None, messages=(), extra_args=None):  # noqa: ANN001, ANN201 # AgentDojo's
        shown = [_shown(message) for message in messages]
        results = "".join(_letters(one["text"]) for one in shown if one["role"] == "tool")
        self.reached = self.reached or (bool(self._goal) and self._goal in results)
        number = len(messages)
        if self._given:
            call = self._given.pop(0)
            text, calls = "", [FunctionCall(function=call.function, args=call.args, id=f"call_{number:02}00")]
        else:
            tools = [_tool(one) for one in runtime.functions.values()]
            self._line.send({"ask": {"messages": shown, "tools": tools}})
            answer = next(self._line.receive())
            text, calls = (
                answer["text"],
                [_call(one, f"call_{number:02}{i:02}") for i, one in enumerate(answer["calls"])],
            )
        # The content is never None: AgentDojo would run the whole task again, up to three times.
        said = {
            "role": "assistant",
            "content": [text_content_block_from_string(text)],
            "tool_calls": calls or None,
        }
        return query, runtime, env, [*messages, said], extra_args or {}


def _letters(text: str) -> str:
    """Return letters and digits only: results are YAML, which breaks lines inside strings."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    shown = {"role": message["role"], "text": get_text_content_as_str(message["content"] or [])}
    if message["role"] == "assistant":
        calls = message["tool_calls"] or []
        shown["calls"] = [{"id": one.id, "name": one.function, "arguments": dict(one.args)} for one in calls]
    if message["role"] == "tool":
        # as AgentDojo's own model classes do it: the error instead of the result
        shown |= {"id": message["tool_call_id"], "name": message["tool_call"].function, "error": bool(message["error"])}
        shown["text"] = message["error"] or shown["text"]
    return shown


def _tool(function: Any) -> dict[str, Any]:  # noqa: ANN401 # AgentDojo is not in .venv
    schema = function.parameters.model_json_schema()
    return {"name": function.name, "description": function.description, "parameters": schema}


def _call(call: dict[str, str], id: str) -> FunctionCall:
    """Read a call; arguments that are no object become none, and AgentDojo reports what is missing."""
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        arguments = {}
    return FunctionCall(function=call["name"], args=arguments if isinstance(arguments, dict) else {}, id=id)


def listed(names: Sequence[str]) -> dict[str, Any]:
    """Return the ids of the tasks of these suites."""
    suites = {name: get_suite(BENCHMARK, name) for name in names}
    return {
        name: {"user": list(one.user_tasks), "injection": list(one.injection_tasks)} for name, one in suites.items()
    }


def right_calls(suite: Any, user: Any) -> list[FunctionCall]:  # noqa: ANN401 # AgentDojo is not in .venv
    """Return the right calls up to the first result that has a place for injections."""
    places = {name: f"<CANARY {name}>" for name in suite.get_injection_vector_defaults()}
    environment = user.init_environment(suite.load_and_inject_default_environment(places))
    *_, messages, _ = GroundTruthPipeline(user).query(user.PROMPT, FunctionsRuntime(suite.tools), environment)
    calls: list[FunctionCall] = []
    for message in messages:
        if message["role"] == "assistant":
            calls += message["tool_calls"] or []
        elif any(place in get_text_content_as_str(message["content"]) for place in places.values()):
            break
    return calls


def played(case: dict[str, Any], line: Line) -> dict[str, bool]:
    """Run one case to its end."""
    suite = get_suite(BENCHMARK, case["suite"])
    user = suite.get_user_task_by_id(case["user"])
    injection = suite.get_injection_task_by_id(case["injection"]) if case["attack"] else None
    given = right_calls(suite, user) if case["begun"] else []
    model = Asked(line, injection.GOAL if injection else "", given)
    loop = ToolsExecutionLoop([Executor(), model], max_iters=case["rounds"] + len(given))
    pipeline = AgentPipeline([SystemMessage(load_system_message(None)), InitQuery(), model, loop])
    pipeline.name = NAME
    injections = load_attack(case["attack"], suite, pipeline).attack(user, injection) if injection else {}
    utility, attacked = suite.run_task_with_pipeline(pipeline, user, injection, injections)
    return {"utility": bool(utility), "attacked": bool(attacked) and injection is not None, "reached": model.reached}


def main() -> None:
    """Answer until the line is closed."""
    line = Line(sys.stdout, sys.stdin)
    sys.stdout = sys.stderr  # what AgentDojo prints is no answer
    for asked in line.receive():
        line.send(listed(asked["list"]) if "list" in asked else {"end": played(asked, line)})


if __name__ == "__main__":
    main()
