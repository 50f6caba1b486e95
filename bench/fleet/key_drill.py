"""Creates, uses, limits, rotates and revokes a key under load: how long until every gateway acts on each change.

The drill runs under load, before the first fault: a Redis that starts empty has no stored keys.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fleet.checks import LIMITED, OK
from bench.fleet.load import STEADY, ask
from toolspeak.config.file import load
from toolspeak.config.shape import RateLimits
from toolspeak.gateway.key_admin import KeyAdmin, open_key_admin
from toolspeak.gateway.key_records import KeyOrder

WITHIN_S = 2.0
TRIES = 6
"""Requests to each gateway, on new connections, that must agree: they reach both of its workers."""
RATE = 20
"""Requests a minute of the key that is limited."""
PATIENCE_S = 20.0
_REFUSED = 401


@dataclass
class KeyFigures:
    """Seconds until all gateways acted on a change, and what else the drill showed."""

    made_s: float = 0.0
    rotated_s: float = 0.0
    revoked_s: float = 0.0
    admitted: int = 0
    """Admitted requests of a key that may send `RATE`, when all gateways get more."""
    allowed: float = 0.0
    """The most that the limit allows, including the refill during the requests."""
    audit: dict[str, int] = field(default_factory=dict[str, int])
    """Lines of the drill in the audit logs, by event."""
    problems: list[str] = field(default_factory=list[str])

    def faults(self) -> list[str]:
        """Return what is wrong with the figures."""
        changes = {"made": self.made_s, "rotated": self.rotated_s, "revoked": self.revoked_s}
        late = [f"a key was {name} in {took:.1f} s" for name, took in changes.items() if took > WITHIN_S]
        if not RATE <= self.admitted <= self.allowed + 1:
            late.append(f"a key had {self.admitted} requests admitted instead of {RATE} to {self.allowed:.1f}")
        return late + self.problems


async def drill(ports: Sequence[int], config: Path, state: Path, audits: Sequence[Path]) -> KeyFigures:
    """Run the drill. `state` is the folder of the administration, `audits` are the audit logs of the gateways."""
    admin, figures = await asyncio.to_thread(_open, config, state), KeyFigures()
    made, first = await asyncio.to_thread(admin.make, KeyOrder("drill"))
    figures.made_s = await _until(ports, {first: OK}, figures)
    new, second = await asyncio.to_thread(admin.rotate, made.id, 3600)
    figures.rotated_s = await _until(ports, {first: OK, second: OK}, figures)
    await asyncio.to_thread(admin.revoke, made.id)
    figures.revoked_s = await _until(ports, {first: _REFUSED, second: OK}, figures)
    limited = await _use_up(admin, ports, figures)
    await asyncio.sleep(0.5)  # a gateway writes its audit log before it answers; its disk may be slow
    _read_audit([state / "toolspeak" / "audit.jsonl", *audits], {made.id, new.id, limited}, figures)
    return figures


def _open(config: Path, state: Path) -> KeyAdmin:
    return open_key_admin(load(config, {**os.environ, "XDG_STATE_HOME": str(state)}), "fleet")


async def _until(ports: Sequence[int], wanted: Mapping[str, int], figures: KeyFigures) -> float:
    """Return after how many seconds all gateways gave the expected status for each key."""
    began, found = time.monotonic(), list[int]()
    while time.monotonic() < began + PATIENCE_S:
        asked = time.monotonic()
        found = await asyncio.gather(
            *(_status(port, key) for port in ports for key in wanted for _ in range(TRIES // len(wanted)))
        )
        expected = [wanted[key] for _ in ports for key in wanted for _ in range(TRIES // len(wanted))]
        if found == expected:
            return asked - began
    last = dict(Counter(found))
    figures.problems.append(f"gateways gave {last} instead of {[*wanted.values()]} within {PATIENCE_S:.0f} s")
    return PATIENCE_S


async def _use_up(admin: KeyAdmin, ports: Sequence[int], figures: KeyFigures) -> str:
    """Send three times what a key may send to all gateways; return its id."""
    record, secret = await asyncio.to_thread(
        admin.make, KeyOrder("drill-limited", limits=RateLimits(requests_per_minute=RATE))
    )
    await asyncio.sleep(WITHIN_S)
    began = time.monotonic()
    found = [await _status(ports[number % len(ports)], secret) for number in range(3 * RATE)]
    figures.allowed = round(RATE * (1 + (time.monotonic() - began) / 60), 1)
    figures.admitted = found.count(OK)
    if others := set(found) - {OK, LIMITED}:
        figures.problems.append(f"a limited key got {sorted(others)}")
    return record.id


async def _status(port: int, key: str) -> int:
    body = {"model": STEADY, "messages": [{"role": "user", "content": "drill"}]}
    status, _ = await ask(port, "POST", "/v1/chat/completions", key, body)
    return status


def _read_audit(files: Sequence[Path], keys: set[str], figures: KeyFigures) -> None:
    """Count the lines about these keys; each change must be there once, and each gateway's refusals too."""
    lines: list[dict[str, Any]] = [
        json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()
    ]
    own = [line for line in lines if line.get("key") in keys]
    figures.audit = dict(Counter(str(line["event"]) for line in own))
    for event, count in {"made": 2, "rotated": 1, "revoked": 1}.items():
        if figures.audit.get(event) != count:
            figures.problems.append(f"the audit logs have {figures.audit.get(event, 0)} of {count} keys {event}")
    reasons = {str(line.get("reason")) for line in own if line["event"] == "refused"}
    missing = {"revoked", "limit of the key: requests_per_minute"} - reasons
    figures.problems += [f"no audit log has a refusal with the reason {reason!r}" for reason in sorted(missing)]
