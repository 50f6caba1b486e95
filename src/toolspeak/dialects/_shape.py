r"""How calls stand in an answer, as data: from it calls are written, and upstreams are told to write them so.

Shape("<tool_call>\n", "\n</tool_call>", mark="<tool_call>")

begin("get_weather")      <tool_call>⏎{"name": "get_weather", "arguments":␣
(the arguments)           {"city": "Oslo"}
end                       }⏎</tool_call>
"""

from dataclasses import dataclass

from toolspeak.dialects._grammar import Where
from toolspeak.text.strict import dump


@dataclass(frozen=True)
class Tags:
    """Tags of their own for the function and for each parameter: texts as they are, all else as JSON.

    Each has what stands before the name, what stands behind it, and what stands at the end.
    """

    function: tuple[str, str, str]
    parameter: tuple[str, str, str]


@dataclass(frozen=True)
class Shape:
    """Calls, each a JSON object with the tool's name and arguments, unless there are tags for them."""

    before: str = ""
    """What stands before each call."""
    after: str = ""
    """What stands behind each call."""
    name: str = "name"
    arguments: str = "arguments"
    separator: str = "\n"
    """What stands between two calls."""
    around: tuple[str, str] = ("", "")
    """What stands around all calls; where there is something, the answer is that and nothing else."""
    thought: str = ""
    """The key of a thought that a constrained answer begins with, inside of what stands around."""
    mark: str = ""
    """The beginning of a call that free text must not have: a beginning of `before`, or of the object's own."""
    where: Where = Where.ANYWHERE
    """Where the mark counts."""
    tags: Tags | None = None
    """Tags around the parameters, where they do not stand in the object."""

    @property
    def is_whole(self) -> bool:
        """Return whether the calls are the whole answer, so that there is no free text."""
        return bool(self.around[0])

    @property
    def thinking(self) -> str:
        """Return what stands before the thought."""
        return f'{{"{self.thought}": '

    @property
    def key(self) -> str:
        """Return the key of the list of calls, where an object stands around it."""
        return self.around[0].split('"')[1] if self.is_whole else ""

    @property
    def opening(self) -> str:
        """Return what stands before the tool's name."""
        return self.before + (self.tags.function[0] if self.tags else f'{{"{self.name}": ')

    def named(self, name: str) -> str:
        """Return the name, and what stands between it and the arguments."""
        return f"{name}{self.tags.function[1]}" if self.tags else f'{dump(name)}, "{self.arguments}": '

    def begin(self, name: str) -> str:
        """Return what stands before the arguments."""
        return self.opening + self.named(name)

    @property
    def end(self) -> str:
        """Return what stands behind the arguments."""
        return (self.tags.function[2] if self.tags else "}") + self.after
