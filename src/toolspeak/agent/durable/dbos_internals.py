"""All use of DBOS beyond its public interface. `tests/runs` fails when a new version of DBOS changes any of it.

token          identifies one execution of a run; a worker that takes over gets a new one, and the old one cannot write
claim          start a run here that waits in a queue; `queue.py` decides which of the common queue
hand_back      put the runs of a worker that is dead, or that shuts down, back into the queue
"""

# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

import logging
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, EnqueueOptions, WorkflowStatusString, error
from dbos import _dbos as its_instance
from dbos._context import current_owner_xid
from dbos._core import execute_dequeued_workflow
from dbos._schemas.system_database import SystemSchema
from dbos._serialization import DBOSPortableJSON, DefaultSerializer

from toolspeak.agent.durable.schema import now
from toolspeak.errors import BadConfig

APPLICATION: Final = "toolspeak"
VERSION: Final = "1"
"""Version of the sequence of steps. Only workers of the same version continue each other's runs. It is set here because
DBOS would use a hash of the workflow's source: an upgrade that changes it would strand the runs of older releases."""
WORKFLOW: Final = "toolspeak.run"
QUEUE: Final = "runs"
HERE: Final = "here"
"""The queue of a run that its own process is about to claim. No worker listens to it."""
# The default serializer of DBOS is pickle, so write access to the database would mean code execution.
SERIALIZER: Final = DBOSPortableJSON
WORKFLOWS: Final = SystemSchema.workflow_status
STEPS: Final = SystemSchema.operation_outputs

Cancelled = error.DBOSWorkflowCancelledError
"""The run was cancelled: no later step of this execution is stored."""
Lost = error.DBOSWorkflowConflictIDError
"""Another worker has the run."""
ENQUEUED, PENDING = WorkflowStatusString.ENQUEUED.value, WorkflowStatusString.PENDING.value
CANCELLED = WorkflowStatusString.CANCELLED.value
OVER: Final = (
    WorkflowStatusString.SUCCESS.value,
    WorkflowStatusString.ERROR.value,
    CANCELLED,
    WorkflowStatusString.MAX_RECOVERY_ATTEMPTS_EXCEEDED.value,
)


def refuse_pickle() -> None:
    """Accept JSON only, whatever format a row claims: unpickling would let anyone with write access run code."""
    DefaultSerializer.deserialize = _refuse  # type: ignore[method-assign,assignment]


def _refuse(self: object, written: str) -> NoReturn:
    del self, written
    raise TypeError("a row claims to be pickled; runs are kept as JSON")


def client_of(engine: sa.Engine) -> DBOSClient:
    """Return a DBOS client on these connections. A lost connection raises; by default, DBOS would retry for ever."""
    share_the_log()
    return DBOSClient(
        system_database_engine=engine,
        serializer=SERIALIZER,
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
    )


def migrate_dbos(client: DBOSClient) -> None:
    """Create or upgrade the tables of DBOS."""
    client._sys_db.run_migrations()


def engine_of(client: DBOSClient) -> sa.Engine:
    """Return the engine that knows the schema of DBOS's tables."""
    return client._sys_db.engine


def share_the_log() -> None:
    """Send the log of DBOS through this process's handlers: its own handler would keep standard error open.

    Only warnings are logged: otherwise each of its hundred migrations logs a line.
    """
    log = logging.getLogger("dbos")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)


def check_free() -> None:
    """Raise `BadConfig` if this process has a DBOS instance already: there is one per process, and it is not ours."""
    if its_instance._dbos_global_instance is not None:
        raise BadConfig("this process runs DBOS already: let `toolspeak worker` work on runs")


def work_on_this_loop(dbos: DBOS) -> None:
    """Execute runs on the calling event loop, although `DBOS.launch` is called in a thread to keep the loop free."""
    dbos._background_event_loop.set_main_loop()


def token(run: str) -> str:
    """Return the token of the present execution of a run."""
    return current_owner_xid(run) or ""


def claim(dbos: DBOS, run: str, executor: str, mark: str) -> bool:
    """Start a waiting run here, with a new token. Return False if another worker was faster. Blocks: use a thread."""
    with dbos._sys_db.engine.begin() as connection:
        claimed = mark_claimed(connection, [run], executor, mark)
    return run in claimed and start_claimed(dbos, run, mark)


def mark_claimed(connection: sa.Connection, runs: Sequence[str], executor: str, mark: str) -> list[str]:
    """Give waiting runs to a worker, with a new token; return those that no other worker had claimed, in their order.

    This repeats what DBOS does on dequeue. The condition on the status makes it safe: of several processes that claim a
    run, one update succeeds.
    """
    if not runs:
        return []
    milliseconds = sa.cast(now(connection.dialect) * 1000, sa.BigInteger)
    done = connection.execute(
        sa.update(WORKFLOWS)
        .where(WORKFLOWS.c.workflow_uuid.in_(runs), WORKFLOWS.c.status == ENQUEUED)
        .values(
            status=PENDING,
            owner_xid=mark,
            executor_id=executor,
            application_version=VERSION,
            application_name=APPLICATION,
            started_at_epoch_ms=milliseconds,
            updated_at=milliseconds,
            recovery_attempts=WORKFLOWS.c.recovery_attempts + 1,
        )
        .returning(WORKFLOWS.c.workflow_uuid)
    )
    marked = {str(row[0]) for row in done}
    return [run for run in runs if run in marked]


def start_claimed(dbos: DBOS, run: str, mark: str) -> bool:
    """Start a run that `mark_claimed` has given to this worker. Return False if it was cancelled in the meantime."""
    status = dbos._sys_db.get_workflow_status(run)
    if status is None or status["status"] != PENDING:
        return False
    execute_dequeued_workflow(dbos, status, mark)
    return True


def hand_back(client: DBOSClient, run: str, executor: str) -> bool:
    """Put a run back into the queue if that worker still has it; return whether it had."""
    return client._sys_db.reenqueue_for_recovery(run, [executor], QUEUE)


def forget_tasks(dbos: DBOS) -> None:
    """Cancel executions that have lost their run and wait in DBOS for the result of the other execution."""
    for task in dbos._workflow_tasks:
        task.cancel()


def queued(run: str, queue: str, tenant: str) -> EnqueueOptions:
    """Return the options with which DBOS enqueues a run."""
    return {
        "workflow_name": WORKFLOW,
        "queue_name": queue,
        "workflow_id": run,
        "app_version": VERSION,
        "queue_partition_key": tenant,
    }


def step_outputs(client: DBOSClient, run: str) -> list[tuple[int, str, Any, bool]]:
    """Return a run's steps: number, name, stored value, and whether the step raised."""
    return [
        (step["function_id"], step["function_name"], step["output"], step["error"] is not None)
        for step in client.list_workflow_steps(run)
    ]
