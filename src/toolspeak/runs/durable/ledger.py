"""Our own rows: a run and its events. Each function is one transaction, and blocks.

A run's row follows from its events, and is written with them. Only the execution whose token the row has may write:
a worker that was taken over finds another's there, and nothing of what it says is kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from toolspeak.engine.agent import Status
from toolspeak.runs.durable import seam
from toolspeak.runs.durable.database import Database
from toolspeak.runs.durable.tables import EVENTS, RUNS
from toolspeak.runs.durable.written import read_spec, written_spec
from toolspeak.runs.runs import Line, Numbered
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import CallAsked, CallBegan, CallEnded, RunEnded, RunEvent, TurnBegan

_TASK: Final = 200
"""Characters of a task in a list."""
_BATCH: Final = 500
_ENDED: Final = "run_ended"


@dataclass(frozen=True, slots=True)
class Said:
    """What one execution of a run says."""

    run: str
    token: str
    events: Sequence[RunEvent]


@dataclass(frozen=True, slots=True)
class Row:
    """A run's row."""

    line: Line
    spec: Spec
    reason: str


def begin(database: Database, run: str, spec: Spec, queue: str) -> bool:
    """Write a run down and queue it, both or neither; return whether it is new."""
    text = written_spec(spec)
    row = {"id": run, "tenant": spec.tenant, "task": spec.task[:_TASK], "model": spec.model, "spec": text}
    fresh = {"status": Status.RUNNING.value, "reason": "", "rounds": 0, "ended": 0.0, "next": 0, "token": ""}
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    with database.theirs.begin() as connection:
        added = insert(RUNS).values(**row, **fresh, began=database.now).on_conflict_do_nothing()
        if not connection.execute(added).rowcount:
            return False
        database.client.enqueue_in_transaction(connection, seam.queued(run, queue), text)
    return True


def take(database: Database, run: str, token: str) -> bool | None:
    """Let this execution write about a run; None if it is over, False if it is another's."""
    workflows = seam.WORKFLOWS
    owned = sa.exists().where(workflows.c.workflow_uuid == run, workflows.c.owner_xid == token)
    with database.theirs.begin() as connection:
        taken = connection.execute(
            sa.update(RUNS).where(RUNS.c.id == run, owned).values(token=token).returning(RUNS.c.ended)
        ).first()
    if taken is None:
        return False
    return None if taken[0] else True


def name_model(database: Database, run: str, model: str) -> None:
    """Say which model works on a run that left it open."""
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(model=model))


def write(database: Database, said: Iterable[Said]) -> set[tuple[str, str]]:
    """Keep what was said; return the run and token of those who were not allowed to."""
    refused: set[tuple[str, str]] = set()
    with database.engine.begin() as connection:
        for each in sorted(said, key=lambda each: each.run):  # always in one order, or two could wait for each other
            if not _written(connection, database, each):
                refused.add((each.run, each.token))
    return refused


def _written(connection: sa.Connection, database: Database, said: Said) -> bool:
    allowed = (RUNS.c.id == said.run, RUNS.c.token == said.token, RUNS.c.ended == 0)
    values = {**_standing(said.events, database), "next": RUNS.c.next + len(said.events)}
    row = connection.execute(sa.update(RUNS).where(*allowed).values(values).returning(RUNS.c.next)).first()
    if row is None:
        return False
    first = int(row[0]) - len(said.events)
    connection.execute(
        sa.insert(EVENTS),
        [_event_row(said.run, number, event) for number, event in enumerate(said.events, first)],
    )
    return True


def _event_row(run: str, number: int, event: RunEvent) -> dict[str, Any]:
    tag = type(event).__struct_config__.tag
    return {"run": run, "number": number, "kind": tag, "body": msgspec.json.encode(event).decode()}


def _standing(events: Sequence[RunEvent], database: Database) -> dict[str, Any]:
    """Return what events say of how the run stands."""
    values: dict[str, Any] = {}
    for event in events:
        match event:
            case RunEnded():
                values |= {"status": event.status.value, "reason": event.reason, "rounds": event.round}
                values |= {"ended": database.now, "token": ""}
            case CallAsked():
                values["status"] = Status.WAITING.value
            case CallBegan() | CallEnded():
                values["status"] = Status.RUNNING.value
            case TurnBegan():
                values |= {"status": Status.RUNNING.value, "rounds": event.round}
            case _:
                pass
    return values


def end(database: Database, run: str, status: Status, reason: str) -> bool:
    """End a run from outside; its execution may write no more. Return whether it was not over yet."""
    ended = {"status": status.value, "reason": reason, "ended": database.now, "token": "", "next": RUNS.c.next + 1}
    with database.engine.begin() as connection:
        row = connection.execute(
            sa.update(RUNS)
            .where(RUNS.c.id == run, RUNS.c.ended == 0)
            .values(ended)
            .returning(RUNS.c.next, RUNS.c.rounds)
        ).first()
        if row is not None:
            event = RunEnded(int(row[1]), status, "", reason)
            connection.execute(sa.insert(EVENTS).values(_event_row(run, int(row[0]) - 1, event)))
    return row is not None


def reopen(database: Database, run: str) -> None:
    """Let a run that is over go on: it has no end any more."""
    with database.engine.begin() as connection:
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.run == run, EVENTS.c.kind == _ENDED))
        values = {"status": Status.RUNNING.value, "reason": "", "ended": 0.0}
        connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(values))


def worker_of(database: Database, run: str) -> str:
    """Return who works on a run; nobody if it waits or is over."""
    workflows = seam.WORKFLOWS
    wanted = sa.select(workflows.c.executor_id).where(workflows.c.workflow_uuid == run)
    with database.theirs.begin() as connection:
        found = connection.execute(wanted.where(workflows.c.status == seam.PENDING)).scalar()
    return str(found or "")


def find(database: Database, run: str) -> Row | None:
    """Return a run's row."""
    with database.engine.begin() as connection:
        row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run)).mappings().first()
    if row is None:
        return None
    return Row(_line(row), read_spec(row["spec"]), str(row["reason"]))


def lines(database: Database, limit: int, status: Status | None, tenant: str) -> list[Line]:
    """Return the latest runs, the newest first."""
    wanted = sa.select(RUNS).order_by(RUNS.c.began.desc()).limit(limit)
    if status is not None:
        wanted = wanted.where(RUNS.c.status == status.value)
    if tenant:
        wanted = wanted.where(RUNS.c.tenant == tenant)
    with database.engine.begin() as connection:
        return [_line(row) for row in connection.execute(wanted).mappings()]


def _line(row: sa.RowMapping) -> Line:
    return Line(
        row["id"],
        row["task"],
        Status(row["status"]),
        row["model"],
        row["began"],
        row["ended"],
        row["rounds"],
        row["tenant"],
    )


def events_after(database: Database, run: str, after: int, kind: str = "") -> list[Numbered]:
    """Return the next events, of one kind if it is said."""
    wanted = sa.select(EVENTS.c.number, EVENTS.c.body).where(EVENTS.c.run == run, EVENTS.c.number > after)
    if kind:
        wanted = wanted.where(EVENTS.c.kind == kind)
    with database.engine.begin() as connection:
        rows = connection.execute(wanted.order_by(EVENTS.c.number).limit(_BATCH)).all()
    return [Numbered(int(number), msgspec.json.decode(body, type=RunEvent)) for number, body in rows]
