"""Values of runs for property tests: every part, turn, result and kept message that there can be."""

import json

from hypothesis import strategies as st

from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import CallRejected, Discarded, StopReason, Usage, Why
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Image, Message, Opaque, Reasoning, Result, Role, Text, ToolReference, Vendor
from toolspeak.ir.round import Compact, Round
from toolspeak.ir.turn import Turn

TEXTS = st.text(st.characters(), max_size=8).map(lambda text: json.loads(json.dumps(text)))
"""Lone surrogates too: tools give what they like. Two halves side by side are one character in any JSON."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)
VENDORS = st.none() | st.builds(
    Vendor, st.sampled_from(("anthropic", "gemini")), st.dictionaries(TEXTS, JSON, max_size=2)
)
FIXES = st.lists(st.builds(Fix, TEXTS, TEXTS), max_size=2).map(tuple)

SAID = st.builds(Text, TEXTS, VENDORS)
THOUGHT = st.builds(Reasoning, TEXTS, TEXTS, VENDORS)
CALLS = st.builds(Call, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, FIXES, VENDORS)
PICTURES = st.builds(Image, TEXTS, TEXTS, TEXTS, VENDORS)
OPAQUE = st.builds(Opaque, VENDORS.filter(bool), TEXTS)
COMPLAINTS = st.builds(Complaint, st.sampled_from(Problem), st.none() | TEXTS, TEXTS)
REJECTED = st.builds(CallRejected, COMPLAINTS, TEXTS)
DISCARDED = st.builds(Discarded, st.sampled_from(Why), TEXTS)
PIECES = st.one_of(SAID, PICTURES, st.builds(ToolReference, TEXTS, VENDORS), OPAQUE)
RESULTS = st.builds(Result, TEXTS, st.lists(PIECES, max_size=3).map(tuple), TEXTS, st.booleans(), VENDORS)

COUNTS = st.integers(0, 9)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
FAILURES = st.builds(
    Failure, st.sampled_from(FailureKind), TEXTS, COUNTS, TEXTS, TEXTS, st.none() | st.floats(0, 9, width=16)
)
TURNS = st.builds(
    Turn,
    st.lists(st.one_of(SAID, THOUGHT, CALLS, REJECTED, DISCARDED), max_size=4).map(tuple),
    st.none() | st.sampled_from(StopReason),
    USAGES,
    TEXTS,
    st.none() | FAILURES,
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(Role),
    st.lists(st.one_of(SAID, THOUGHT, PICTURES, CALLS, RESULTS, OPAQUE), max_size=4).map(tuple),
    VENDORS,
)
ROUNDS = st.builds(
    Round,
    st.lists(SAID | THOUGHT, max_size=2).map(tuple),
    st.lists(CALLS, max_size=2).map(tuple),
    st.lists(RESULTS, max_size=2).map(tuple),
)
COMPACTS = st.builds(Compact, MESSAGES, st.lists(ROUNDS, max_size=2).map(tuple))
