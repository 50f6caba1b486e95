"""gpt-oss harmony: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>` (D38).

Servers have been seen to drop the tokens and keep the words: `analysis…assistantfinal…`. That is read too.
"""

from toolspeak.dialects._channels import ANALYSIS, ENDS, Channel
from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Label, Reasoning, Special, Where, Wrapper
from toolspeak.dialects._named_json import NamedJson, by_pattern
from toolspeak.dialects._shared import RECOVERY

_HEADERS = tuple(Special(token, Channel(token), reasoning=(ANALYSIS,)) for token in ("<|channel|>", "<|start|>"))
_STRIPPED_THOUGHT = Reasoning(
    "analysis", ("assistantfinal",), stops=("assistantcommentary to=", "commentary to="), where=Where.START
)
_STRIPPED_CALL = Wrapper(
    ("commentary to=", "assistantcommentary to="),
    (),
    (NamedJson((by_pattern(r"(?:functions\.)?(?P<name>[\w.\-]{1,128})\s*(?:json|code)?\s*"),)),),
    Where.LINE,
)
_MARKED = Grammar(closers=ENDS, specials=_HEADERS)
"""With all its tokens: no other text looks like that, so only this half rescues."""
_STRIPPED = Grammar((_STRIPPED_CALL,), reasoning=(_STRIPPED_THOUGHT,), labels=(Label("assistantfinal"),))

DIALECT = Dialect("harmony", _MARKED | _STRIPPED | RECOVERY, rescues=_MARKED)
