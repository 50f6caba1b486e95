"""G7, labels at line starts: `Action: f` / `Action Input: {…}`, and other alphabets of the same idea."""

import re
from dataclasses import dataclass

from toolspeak.dialects._attempt import MORE, Mark, Outcome, Scope
from toolspeak.dialects._json_form import JsonBody
from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix
from toolspeak.toolset.check import Attempt

_BLANK = re.compile(r"[ \t]*")
_MAX_NAME = 160
_MAX_HEAD = 512


class LabelledForm:
    """Reads the name on the label's line, the label of the arguments, and the arguments."""

    def __init__(self, scope: Scope, arguments_label: str) -> None:
        """Start behind the first label."""
        self._scope, self._label = scope, arguments_label
        self._name: str | None = None
        self._head = ""
        self._body: JsonBody | None = None
        self._plain: list[str] | None = None

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        """Consume up to the end of the arguments."""
        if self._body is not None:
            return self._in_json(text, pos, self._body, final=final)
        if self._plain is not None:
            return self._in_plain(text, pos, self._plain, final=final)
        return self._in_head(text, pos, final=final)

    def _in_head(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        """Hold the short head whole: name, newline, label, and what the arguments start with."""
        head = text[pos:]
        name, newline, rest = head.partition("\n")
        unknown = bool(newline) and self._scope.tools.find(name.strip()).tool is None
        if unknown or len(name) > _MAX_NAME or len(rest) - len(rest.lstrip()) > _MAX_HEAD:
            return pos, Mark.REFUSED
        label = rest.lstrip()
        half = len(label) < len(self._label) and self._label.startswith(label)
        if not newline or (half and not final) or (half and label):
            return pos, self._cut(name) if final else MORE
        self._name = name.strip()
        if not label.startswith(self._label):
            return pos + len(name), self._without_arguments()
        begin = pos + len(head) - len(label) + len(self._label)
        blank = _BLANK.match(text, begin)
        begin = blank.end() if blank else begin
        if begin == len(text) and not final:
            self._name = None
            return pos, MORE
        return self._begin(text, begin, final=final)

    def _begin(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        if text.startswith("{", pos):
            self._body = JsonBody(self._scope)
        else:
            self._plain = []
        return self.feed(text, pos, final=final)

    def _in_json(self, text: str, pos: int, body: JsonBody, *, final: bool) -> tuple[int, Outcome]:
        pos, over = body.feed(text, pos, final=final)
        return pos, (body.attempt(self._name),) if over else MORE

    def _in_plain(self, text: str, pos: int, plain: list[str], *, final: bool) -> tuple[int, Outcome]:
        """Read a line of text that is no JSON: the one argument of a tool that takes just one string."""
        end = text.find("\n", pos)
        plain.append(text[pos : len(text) if end < 0 else end])
        if end < 0 and not final:
            return len(text), MORE
        return len(text) if end < 0 else end, self._one_string("".join(plain).strip(), ended=end >= 0)

    def _one_string(self, value: str, *, ended: bool) -> Outcome:
        tool = self._scope.tools.find(self._name or "").tool
        keys = self._scope.tools.ordered(tool) if tool is not None else ()
        if value in ("", "None", "{}"):
            return self._without_arguments()
        if len(keys) == 1 and ended:
            return (Attempt(self._name, {keys[0]: value}, fixes=(Fix("plain_input"),)),)
        problem = Problem.PARSE_ERROR if ended else Problem.TRUNCATED
        return (Attempt(self._name, problem=problem, detail="the arguments are not a JSON object"),)

    def _without_arguments(self) -> Outcome:
        return (Attempt(self._name, {}, fixes=(Fix("no_arguments"),)),)

    def _cut(self, name: str) -> Outcome:
        if self._scope.tools.find(name.strip()).tool is None:
            return Mark.REFUSED
        return (Attempt(name.strip(), problem=Problem.TRUNCATED, detail="no arguments follow"),)


@dataclass(frozen=True)
class Labelled:
    """The kind of body that follows a label with the tool's name."""

    arguments_label: str

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Start anywhere: only a tool's name is taken for one."""
        del text, pos, scope, final
        return True

    def new(self, scope: Scope) -> LabelledForm:
        """Make a reader for one call."""
        return LabelledForm(scope, self.arguments_label)
