"""Everything that we take from DBOS beyond its public interface: `tests/runs` notices when it moves.

token          which execution of a run this is; a worker that takes over gets another, and the old one writes nothing
claim          work here on a run that waits in a queue
hand_back      put the runs of a worker that is dead, or that ends, back into the queue
"""

# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

import logging
from typing import Any, Final, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, EnqueueOptions, WorkflowStatusString, error
from dbos import _dbos as its_instance
from dbos._context import current_owner_xid
from dbos._core import execute_dequeued_workflow
from dbos._queue import Queue
from dbos._schemas.system_database import SystemSchema
from dbos._serialization import DBOSPortableJSON, DefaultSerializer

from toolspeak.errors import BadConfig

APPLICATION: Final = "toolspeak"
VERSION: Final = "1"
"""Of the steps that a run is made of. Only workers of the same version take up each other's runs."""
WORKFLOW: Final = "toolspeak.run"
QUEUE: Final = "runs"
HERE: Final = "here"
"""Where a run stands for a moment that its own process is about to claim. Nobody listens there."""
SERIALIZER: Final = DBOSPortableJSON
WORKFLOWS: Final = SystemSchema.workflow_status
STEPS: Final = SystemSchema.operation_outputs

Cancelled = error.DBOSWorkflowCancelledError
"""Somebody has cancelled the run: nothing of it is kept from here on."""
Lost = error.DBOSWorkflowConflictIDError
"""The run is another's by now."""
ENQUEUED, PENDING = WorkflowStatusString.ENQUEUED.value, WorkflowStatusString.PENDING.value
CANCELLED = WorkflowStatusString.CANCELLED.value
OVER: Final = (
    WorkflowStatusString.SUCCESS.value,
    WorkflowStatusString.ERROR.value,
    CANCELLED,
    WorkflowStatusString.MAX_RECOVERY_ATTEMPTS_EXCEEDED.value,
)


def refuse_pickle() -> None:
    """Read JSON only, whatever a row says it is: unpickling would let whoever writes to the database run code."""
    DefaultSerializer.deserialize = _refuse  # type: ignore[method-assign,assignment]


def _refuse(self: object, written: str) -> NoReturn:
    del self, written
    raise TypeError("a row claims to be pickled; runs are kept as JSON")


def client_of(engine: sa.Engine) -> DBOSClient:
    """Return a client of DBOS on these connections. A lost connection is an error; by default DBOS retries for ever."""
    share_the_log()
    return DBOSClient(
        system_database_engine=engine,
        serializer=SERIALIZER,
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
    )


def migrate_dbos(client: DBOSClient) -> None:
    """Make DBOS's tables, or bring them up to date."""
    client._sys_db.run_migrations()


def engine_of(client: DBOSClient) -> sa.Engine:
    """Return connections that know where DBOS's tables are."""
    return client._sys_db.engine


def share_the_log() -> None:
    """Let DBOS log where all of this process does: on its own it would keep hold of standard error.

    Only what goes wrong: each of its hundred migrations is a line otherwise.
    """
    log = logging.getLogger("dbos")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)


def check_free() -> None:
    """Refuse to share: a process has one DBOS, and it may be another program's."""
    if its_instance._dbos_global_instance is not None:
        raise BadConfig("this process runs DBOS already: let `toolspeak worker` work on runs")


def work_on_this_loop(dbos: DBOS) -> None:
    """Let runs be worked on by the loop that calls this, though DBOS is started from a thread, to keep it free."""
    dbos._background_event_loop.set_main_loop()


def token(run: str) -> str:
    """Return the mark of this execution."""
    return current_owner_xid(run) or ""


def claim(dbos: DBOS, run: str, executor: str, mark: str) -> bool:
    """Begin to work here on a run that waits, under a fresh mark; call it from a thread."""
    database = dbos._sys_db
    with database.engine.begin() as connection:
        done = connection.execute(
            sa.update(WORKFLOWS)
            .where(WORKFLOWS.c.workflow_uuid == run, WORKFLOWS.c.status == ENQUEUED)
            .values(
                status=PENDING,
                owner_xid=mark,
                executor_id=executor,
                application_version=VERSION,
                application_name=APPLICATION,
                started_at_epoch_ms=database._now_ms_sql(),
                updated_at=database._now_ms_sql(),
                recovery_attempts=WORKFLOWS.c.recovery_attempts + 1,
            )
        )
    status = database.get_workflow_status(run) if done.rowcount else None
    if status is not None:
        execute_dequeued_workflow(dbos, status, mark)
    return status is not None


def hand_back(client: DBOSClient, run: str, executor: str) -> bool:
    """Put a run back into the queue if that worker still has it."""
    return client._sys_db.reenqueue_for_recovery(run, [executor], QUEUE)


def stop_taking(dbos: DBOS) -> None:
    """Take no further runs out of the queue."""
    for each in dbos.background_thread_stop_events:
        each.set()


def forget_tasks(dbos: DBOS) -> None:
    """Stop executions that have lost their run, and wait for what comes of it elsewhere."""
    for task in dbos._workflow_tasks:
        task.cancel()


def register_queue(client: DBOSClient, concurrent: int, poll: float) -> Queue:
    """Return how the queue of runs is worked off."""
    return client.register_queue(
        QUEUE, worker_concurrency=concurrent, polling_interval_sec=poll, application_name=APPLICATION
    )


def queued(run: str, queue: str) -> EnqueueOptions:
    """Return which run is to be queued where."""
    return {"workflow_name": WORKFLOW, "queue_name": queue, "workflow_id": run, "app_version": VERSION}


def step_outputs(client: DBOSClient, run: str) -> list[tuple[int, str, Any, bool]]:
    """Return a run's steps: number, name, what was kept, whether it raised."""
    return [
        (step["function_id"], step["function_name"], step["output"], step["error"] is not None)
        for step in client.list_workflow_steps(run)
    ]
