"""Reads and writes our own rows: runs and their events. Each function is one transaction, and blocks.

A run's row is derived from its events, and written in the same transaction. Only the execution whose token is in the
row may write. A worker whose run was taken over finds another token there, and none of its events is stored.

The last functions clean up: they delete old runs, and end runs whose worker or canceller died before it wrote the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from shutil import rmtree
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.schema import EVENTS, RUNS
from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallAsked, ToolCallBegan, ToolCallEnded, TurnBegan
from toolspeak.agent.runs.preparation import own_folder
from toolspeak.agent.runs.runs import NumberedEvent, RunSummary, Spec, decode_spec, encode_spec
from toolspeak.engine.agent import Status
from toolspeak.errors import TooManyRuns

_TASK: Final = 200
"""Characters of the task in a list of runs."""
_BATCH: Final = 500
_ENDED: Final = "run_ended"
_GATE: Final = 0x6C697665
"""First key of the advisory locks under which runs become live; the second key is derived from the tenant."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events of one execution of a run."""

    run: str
    token: str
    events: Sequence[RunEvent]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the table of runs."""

    line: RunSummary
    spec: Spec
    reason: str


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to start: its id, its name for the tenant, its spec, and its queue."""

    id: str
    name: str
    spec: Spec
    queue: str


def begin(database: Database, new: NewRun, live: int | None) -> bool:
    """Insert and enqueue a run in one transaction. Return False if the tenant has a run of this name already.

    Raises `TooManyRuns`, and writes nothing, if the tenant has `live` live runs already.
    """
    spec, text = new.spec, encode_spec(new.spec)
    row = {"id": new.id, "name": new.name, "tenant": spec.tenant, "task": spec.task[:_TASK], "model": spec.model}
    fresh = {"status": Status.RUNNING.value, "reason": "", "rounds": 0, "ended": 0.0, "next": 0, "token": ""}
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    with database.theirs.begin() as connection:
        _enter_gate(connection, spec.tenant, live)
        # The insert comes before the count: on SQLite it takes the write lock, so no other process can insert in
        # between.
        added = insert(RUNS).values(**row, **fresh, spec=text, began=database.now).on_conflict_do_nothing()
        if connection.execute(added.returning(RUNS.c.id)).first() is None:  # psycopg reports -1 rows for an insert
            return False
        _check_room(connection, spec.tenant, live)
        database.client.enqueue_in_transaction(connection, dbos_internals.queued(new.id, new.queue, spec.tenant), text)
    return True


def _enter_gate(connection: sa.Connection, tenant: str, live: int | None) -> None:
    """Serialise the transactions of a tenant that make a run live, across all processes.

    60 parallel requests passed a limit of 20 when each of them counted before any had inserted. PostgreSQL takes an
    advisory lock. SQLite needs none: it has one writer at a time, and the caller writes before it counts.
    """
    if live is not None and connection.dialect.name == "postgresql":
        key = int.from_bytes(sha256(tenant.encode()).digest()[:4], signed=True)  # a collision only costs waiting
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_GATE, key)))


def _check_room(connection: sa.Connection, tenant: str, live: int | None) -> None:
    """Raise `TooManyRuns` if the tenant has more than `live` live runs, including the one of this transaction."""
    if live is None:
        return
    count = sa.select(sa.func.count()).select_from(RUNS).where(RUNS.c.tenant == tenant, RUNS.c.ended == 0)
    if connection.execute(count).scalar_one() > live:
        raise TooManyRuns(live)


def take(database: Database, run: str, token: str) -> bool | None:
    """Set the execution's token on a run. Return None if the run has ended, False if another execution owns it."""
    workflows = dbos_internals.WORKFLOWS
    owned = sa.exists().where(workflows.c.workflow_uuid == run, workflows.c.owner_xid == token)
    with database.theirs.begin() as connection:
        taken = connection.execute(
            sa.update(RUNS).where(RUNS.c.id == run, owned).values(token=token).returning(RUNS.c.ended)
        ).first()
    if taken is None:
        return False
    return None if taken[0] else True


def began(database: Database, run: str) -> float:
    """Return when a run began, in seconds since 1970 by the database's clock."""
    with database.engine.begin() as connection:
        return float(connection.execute(sa.select(RUNS.c.began).where(RUNS.c.id == run)).scalar_one())


def name_model(database: Database, run: str, model: str) -> None:
    """Record the chosen model of a run whose request did not name one."""
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(model=model))


def write(database: Database, said: Iterable[EventBatch]) -> set[tuple[str, str]]:
    """Store events. Return the (run, token) pairs that were refused because another execution owns the run."""
    refused: set[tuple[str, str]] = set()
    with database.engine.begin() as connection:
        for each in sorted(said, key=lambda each: each.run):  # a fixed lock order, or two workers could deadlock
            if not _written(connection, database, each):
                refused.add((each.run, each.token))
    return refused


def _written(connection: sa.Connection, database: Database, said: EventBatch) -> bool:
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
    """Return the columns of the run's row that follow from these events."""
    values: dict[str, Any] = {}
    for event in events:
        match event:
            case RunEnded():
                values |= {"status": event.status.value, "reason": event.reason, "rounds": event.round}
                values |= {"ended": database.now, "token": ""}
            case ToolCallAsked():
                values["status"] = Status.WAITING.value
            case ToolCallBegan() | ToolCallEnded():
                values["status"] = Status.RUNNING.value
            case TurnBegan():
                values |= {"status": Status.RUNNING.value, "rounds": event.round}
            case _:
                pass
    return values


def end(database: Database, run: str, status: Status, reason: str) -> bool:
    """End a run from outside. Its execution can write no more. Return False if the run had ended already."""
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


def reopen(database: Database, line: RunSummary, live: int | None) -> bool:
    """Make an ended run live again. Return False if it is live, or has another status, by now.

    Raises `TooManyRuns`, and changes nothing, if the tenant has `live` live runs already.
    """
    workflows = dbos_internals.WORKFLOWS
    ended = (RUNS.c.id == line.id, RUNS.c.status == line.status.value, RUNS.c.ended > 0)
    values = {"status": Status.RUNNING.value, "reason": "", "ended": 0.0}
    with database.theirs.begin() as connection:
        _enter_gate(connection, line.tenant, live)
        if not connection.execute(sa.update(RUNS).where(*ended).values(values)).rowcount:
            return False
        _check_room(connection, line.tenant, live)
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.run == line.id, EVENTS.c.kind == _ENDED))
        # DBOS still has the old final status until the caller has resumed the workflow. The new timestamp keeps
        # `end_abandoned_runs` from ending the run again in between.
        touched = sa.update(workflows).where(workflows.c.workflow_uuid == line.id)
        connection.execute(touched.values(updated_at=sa.cast(database.now * 1000, sa.BigInteger)))
    return True


def worker_of(database: Database, run: str) -> str:
    """Return the id of the worker that executes a run; an empty string if the run waits or has ended."""
    workflows = dbos_internals.WORKFLOWS
    wanted = sa.select(workflows.c.executor_id).where(workflows.c.workflow_uuid == run)
    with database.theirs.begin() as connection:
        found = connection.execute(wanted.where(workflows.c.status == dbos_internals.PENDING)).scalar()
    return str(found or "")


def read_run(database: Database, run: str) -> RunRow | None:
    """Return a run's row; None if there is no such run."""
    with database.engine.begin() as connection:
        row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run)).mappings().first()
    if row is None:
        return None
    return RunRow(_line(row), decode_spec(row["spec"]), str(row["reason"]))


def id_of(database: Database, tenant: str, name: str) -> str | None:
    """Return the id of the run that a tenant knows by this name; None if there is none."""
    with database.engine.begin() as connection:
        found = connection.execute(sa.select(RUNS.c.id).where(RUNS.c.tenant == tenant, RUNS.c.name == name)).scalar()
    return None if found is None else str(found)


def lines(database: Database, limit: int, status: Status | None, tenant: str) -> list[RunSummary]:
    """Return the latest runs, newest first. An empty tenant means all tenants."""
    wanted = sa.select(RUNS).order_by(RUNS.c.began.desc()).limit(limit)
    if status is not None:
        wanted = wanted.where(RUNS.c.status == status.value)
    if tenant:
        wanted = wanted.where(RUNS.c.tenant == tenant)
    with database.engine.begin() as connection:
        return [_line(row) for row in connection.execute(wanted).mappings()]


def _line(row: sa.RowMapping) -> RunSummary:
    return RunSummary(
        row["id"],
        row["task"],
        Status(row["status"]),
        row["model"],
        row["began"],
        row["ended"],
        row["rounds"],
        row["tenant"],
        row["name"],
    )


def events_after(database: Database, run: str, after: int, kind: str = "") -> list[NumberedEvent]:
    """Return the next events after a number, at most 500; with `kind`, only those of one kind."""
    wanted = sa.select(EVENTS.c.number, EVENTS.c.body).where(EVENTS.c.run == run, EVENTS.c.number > after)
    if kind:
        wanted = wanted.where(EVENTS.c.kind == kind)
    with database.engine.begin() as connection:
        rows = connection.execute(wanted.order_by(EVENTS.c.number).limit(_BATCH)).all()
    return [NumberedEvent(int(number), msgspec.json.decode(body, type=RunEvent)) for number, body in rows]


# ---------------------------------------------------------------- cleanup


_DAY: Final = 24 * 3600.0
_MANY: Final = 200
_SETTLED: Final = 5.0
"""Seconds after which an ended workflow counts as abandoned: before, its worker may still be writing the end."""


def delete_old_runs(database: Database, days: float) -> int:
    """Delete runs that ended more than `days` ago, with their steps, events and own folders. Return their number."""
    old = sa.select(RUNS.c.id, RUNS.c.spec).where(RUNS.c.ended > 0, RUNS.c.ended < database.now - days * _DAY)
    with database.engine.begin() as connection:
        places = {str(row[0]): decode_spec(row[1]).folder_of for row in connection.execute(old.limit(_MANY))}
    runs = [*places]
    if not runs:
        return 0
    # DBOS's rows first: after a crash in between, our row is still there, and the next call deletes the rest.
    database.client.delete_workflows(runs)
    with database.engine.begin() as connection:
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.run.in_(runs)))
        connection.execute(sa.delete(RUNS).where(RUNS.c.id.in_(runs)))
    for place in _unused_places(database, {*places.values(), *runs} - {""}):
        if folder := own_folder(place):
            rmtree(folder, ignore_errors=True)
    return len(runs)


def _unused_places(database: Database, places: set[str]) -> set[str]:
    """Return those runs in whose own folders no stored run works: a continued run works in that of the first."""
    continued = sa.select(RUNS.c.spec).where(RUNS.c.spec.contains('"folder_of":'))
    with database.engine.begin() as connection:
        stored = {str(row[0]) for row in connection.execute(sa.select(RUNS.c.id).where(RUNS.c.id.in_(places)))}
        return places - stored - {decode_spec(row[0]).folder_of for row in connection.execute(continued)}


def end_abandoned_runs(database: Database) -> int:
    """End runs that DBOS has given up, or whose canceller died between cancelling and writing the end."""
    workflows = dbos_internals.WORKFLOWS
    quiet = workflows.c.updated_at < (database.now - _SETTLED) * 1000
    found = (
        sa.select(RUNS.c.id, workflows.c.status)
        .join(workflows, workflows.c.workflow_uuid == RUNS.c.id)
        .where(RUNS.c.ended == 0, workflows.c.status.in_(dbos_internals.OVER), quiet)
        .limit(_MANY)
    )
    with database.theirs.begin() as connection:
        rows = [(str(run), str(status)) for run, status in connection.execute(found)]
    return sum(_mend(database, run, status) for run, status in rows)


def _mend(database: Database, run: str, status: str) -> bool:
    if status == dbos_internals.CANCELLED:
        return end(database, run, Status.CANCELLED, "cancelled")
    return end(database, run, Status.FAILED, f"its worker could not end it ({status.lower()})")
