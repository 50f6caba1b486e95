"""Supervises the workers of one gateway: `toolspeak serve --workers N`.

    supervisor ── binds the port, forks, watches, writes the log
      ├─ worker 1      accepts from the same socket, answers
      └─ worker 2

**One listening socket.** All workers accept from the socket that the supervisor has bound. With a socket for each of
them (SO_REUSEPORT) the kernel would give each connection to one queue, and those that wait in the queue of a worker
that ends are reset: a rolling restart would lose requests.

**Fork, not a fresh interpreter.** The supervisor has loaded all modules and tables, and runs no event loop and no
thread, so a fork of it is safe. Measured with CPython 3.11: a worker has 14 MB of its own instead of 44 MB, and is
ready after 0.1 s of CPU instead of 1 s. The price: an update of the package needs a restart of the whole gateway.

**A worker that dies** is replaced after a pause, which grows while its successors die soon too. One that cannot start
at all ends the gateway, unless others serve. **A worker that hangs** gives no sign of life: it is killed, and replaced
like one that died. Without that, it would keep the connections that the kernel gives it.

**SIGHUP**, or a change of the file with `server.reload_on_change`, reads the configuration, and replaces one worker
after another: the new one accepts connections before the old one stops to, and the old one drains. **SIGTERM and
SIGINT** let all workers drain; a second SIGINT (Ctrl-C again) ends their requests. Workers are process groups of their
own, so that Ctrl-C in a terminal reaches the supervisor alone. A worker whose supervisor was killed drains as well.
"""

import logging
import os
import selectors
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import inf
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from typing_extensions import override

from toolspeak.config.shape import Config
from toolspeak.engine.readers import warm
from toolspeak.errors import BadConfig
from toolspeak.gateway.access_log import formatter
from toolspeak.gateway.collector import freeze_loaded
from toolspeak.gateway.file_watch import LOOK_EVERY
from toolspeak.gateway.reload import log_changes_at_start, log_reload, reload_problems, watch_config
from toolspeak.gateway.server import LINGER, build, run_worker, terminal_is_gone
from toolspeak.gateway.worker_output import WorkerOutput
from toolspeak.gateway.worker_share import WorkerLink, WorkerShare, read_message
from toolspeak.runtime.clock import CLOCK

_LOG: Final = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a dead worker is replaced; each further death doubles them, up to the second value."""
_STEADY: Final = 60.0
"""Seconds after which a worker counts as healthy: its death begins with the first pause again."""
_GRACE: Final = 30.0
"""Seconds beyond the longest drain after which a worker that still drains is killed."""
_GENERATIONS: Final = 4
"""How often all workers can be replaced while the oldest still drain; a further reload waits."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_AT_START: Final = {"server": ("host", "port", "workers", "log")}
"""Settings that a rolling restart does not change."""
_BAD_START: Final = 2
_FAULT: Final = 1


class _State(Enum):
    STARTING = auto()
    SERVING = auto()
    DRAINING = auto()


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    number: int
    """By which people know it: 1 to N. Its successor has the same."""
    column: int
    """Its place in what workers share; no two living ones have the same."""
    pid: int
    control: socket.socket
    output: WorkerOutput
    started: float
    failures: int
    """Deaths in a row of those that had this number before."""
    timeout: float
    """Seconds without a sign of life after which it is killed, as it knows them itself."""
    state: _State = _State.STARTING
    heard: float = inf
    """When it gave its last sign of life; before it serves, it need not give one."""
    killed_at: float = inf
    problem: BadConfig | OSError | None = None
    """Why it could not start."""

    @override
    def __str__(self) -> str:
        return f"worker {self.number} (pid {self.pid})"

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


@dataclass(frozen=True, slots=True)
class _Restart:
    """A worker that must be started again."""

    number: int
    at: float
    failures: int


class WorkerPool:
    """The supervisor of one gateway. It must run in the main thread of a process without other threads."""

    def __init__(
        self,
        config: Config,
        count: int,
        sockets: Sequence[socket.socket],
        folder: Path,
        read: Callable[[], Config],
    ) -> None:
        """Take the sockets that workers accept from, and a private folder. `read` reads the configuration again."""
        columns = count * _GENERATIONS
        self._config = self._previous = config
        self._count: Final = count
        self._sockets: Final = sockets
        self._read: Final = read
        self._share: Final = WorkerShare(folder, columns)
        self._columns: Final = deque(range(columns))
        """Those that no worker has."""
        self._selector: Final = selectors.DefaultSelector()
        self._workers: Final[list[_WorkerProcess]] = []
        """All processes that live."""
        self._restarts: Final[list[_Restart]] = []
        self._rolling: Final[deque[int]] = deque()
        """Numbers of workers that must still be replaced by a rolling restart."""
        self._signals: Final[deque[int]] = deque()
        self._is_stopping = False
        self._has_served = False
        self._wants_reload = False
        self._watch: Final = watch_config(config)
        self._next_look = CLOCK.monotonic() + LOOK_EVERY
        self._error: BaseException | None = None
        """Why the gateway ends."""

    def run(self, ready: Callable[[], None]) -> None:
        """Serve until a signal; `ready` is called when all workers accept connections.

        Raises what the first worker raised if it could not start: `BadConfig`, `OSError`, or `SystemExit` with its
        status.
        """
        # Once, before all forks: tables that are built and objects that are never collected stay in shared memory.
        warm()
        freeze_loaded()
        with self._signals_caught():
            # The first one alone: a mistake is told once, and files that all of them open are created once.
            self._start(1)
            is_announced = False
            while self._workers or (self._restarts and not self._is_stopping):
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._take_signals()
                self._reap()
                self._work()
                if not is_announced and self._serving() == self._count:
                    is_announced = True
                    ready()
        if self._error is not None:
            raise self._error

    # ------------------------------------------------------------ what to do next

    def _work(self) -> None:
        now = CLOCK.monotonic()
        for worker in self._workers:
            if now >= worker.killed_at:
                _LOG.error("%s did not end in time: it is killed", worker)
                worker.killed_at = inf
                worker.signal(signal.SIGKILL)
            elif now >= worker.heard + worker.timeout:
                _LOG.error("%s has given no sign of life for %.0f s: it is killed", worker, now - worker.heard)
                worker.heard = inf
                worker.signal(signal.SIGKILL)
        if self._is_stopping:
            return
        for restart in [each for each in self._restarts if now >= each.at]:
            if self._columns:
                self._restarts.remove(restart)
                self._start(restart.number, restart.failures)
        self._look(now)
        if self._wants_reload and not self._rolling and not self._starting():
            self._wants_reload = False
            self._reload()
        if self._rolling and not self._starting() and self._columns:
            self._start(self._rolling.popleft())

    def _patience(self) -> float | None:
        """Return how long nothing needs to be done unless something happens; None for ever."""
        due = [min(worker.killed_at, worker.heard + worker.timeout) for worker in self._workers]
        due += [restart.at for restart in self._restarts] if self._columns else []
        due += [self._next_look] if self._is_watching() else []
        soonest = min(due, default=inf)
        return None if soonest == inf else max(0.0, soonest - CLOCK.monotonic())

    def _is_watching(self) -> bool:
        return self._watch is not None and self._config.server.reload_on_change and not self._is_stopping

    def _look(self, now: float) -> None:
        """Ask for a reload if the file has changed; only the supervisor watches it, and workers never do."""
        if self._watch is not None and self._is_watching() and now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            self._wants_reload = self._watch.look() or self._wants_reload

    def _serving(self) -> int:
        return sum(worker.state is _State.SERVING for worker in self._workers)

    def _starting(self) -> bool:
        return any(worker.state is _State.STARTING for worker in self._workers)

    # ------------------------------------------------------------ signals

    def _take_signals(self) -> None:
        while self._signals:
            number = self._signals.popleft()
            if number == signal.SIGHUP and not terminal_is_gone():
                self._wants_reload = True
            elif number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._stop(is_again=self._is_stopping and number == signal.SIGINT)

    def _stop(self, *, is_again: bool) -> None:
        """Let all workers drain; the second time, end their requests."""
        if not self._is_stopping:
            self._is_stopping = True
            for listening in self._sockets:  # or clients would wait in the queue of a socket that is never read
                listening.close()
        for worker in self._workers:
            self._drain(worker, signal.SIGINT if is_again else signal.SIGTERM)

    def _drain(self, worker: _WorkerProcess, number: int) -> None:
        worker.state, worker.heard = _State.DRAINING, inf
        server = self._config.server
        patience = 2 * server.shutdown + LINGER + server.drain_delay + _GRACE
        worker.killed_at = min(worker.killed_at, CLOCK.monotonic() + patience)
        worker.signal(number)

    def _reload(self) -> None:
        with reload_problems():
            if self._watch is not None:
                self._watch.take()
            config = self._read()
            log_changes_at_start(self._config, config, _AT_START)
            server, old = config.server, self._config.server
            server = replace(server, host=old.host, port=old.port, workers=old.workers, log=old.log)
            self._previous, self._config = self._config, replace(config, server=server)
            self._rolling.extend(range(1, self._count + 1))
            log_reload(config)

    # ------------------------------------------------------------ beginnings and ends of workers

    def _start(self, number: int, failures: int = 0) -> None:
        column = self._columns.popleft()
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        sys.stderr.flush()
        # A signal between the fork and the worker's own handlers would run those of the supervisor.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if not pid:
            os.close(reading)
            ours.close()
            self._become_worker(WorkerLink(number, self._share, self._sockets, theirs), column, writing)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(writing)
        theirs.close()
        server, now = self._config.server, CLOCK.monotonic()
        output = WorkerOutput(reading, number, server.log)
        worker = _WorkerProcess(number, column, pid, ours, output, now, failures, server.worker_timeout)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(worker))
        self._selector.register(reading, selectors.EVENT_READ, lambda: self._relay(worker))

    def _become_worker(self, link: WorkerLink, column: int, output: int) -> NoReturn:
        """Serve in the forked process, and end it; nothing of the supervisor's stack may be unwound here."""
        status = _FAULT
        try:
            os.setpgid(0, 0)
            self._forget_supervisor()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            for handler in logging.getLogger().handlers:
                handler.setFormatter(formatter(self._config.server.log, link.number))
            self._share.begin(column)
            run_worker(build(self._config, share=self._share), self._config, link)
            status = 0
        except KeyboardInterrupt:  # a signal before the server had its own handlers
            status = 0
        except SystemExit as ended:  # uvicorn, which has logged why
            status = ended.code if isinstance(ended.code, int) else _FAULT
        except (BadConfig, OSError) as error:
            status = _BAD_START
            if link.is_ready:
                traceback.print_exc()
            else:
                link.fail(error)
        except BaseException:  # noqa: BLE001 # the process ends below, whatever it is
            traceback.print_exc()
        finally:
            with suppress(Exception):
                logging.shutdown()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _forget_supervisor(self) -> None:
        """Close what belongs to the supervisor and to other workers: with a pipe left open, no one sees their end."""
        signal.set_wakeup_fd(-1)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._selector.close()
        # As in a gateway of one process; uvicorn installs its own handlers, and the server that of SIGHUP.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _hear(self, worker: _WorkerProcess) -> None:
        try:
            said = read_message(worker.control)
        except OSError:
            said = False
        if isinstance(said, bool):
            if not said:
                self._selector.unregister(worker.control)
            elif worker.state is _State.STARTING:
                self._serve(worker)
            elif worker.state is _State.SERVING and worker.heard < inf:
                worker.heard = CLOCK.monotonic()
        else:
            worker.problem = said

    def _serve(self, worker: _WorkerProcess) -> None:
        """Note that a worker accepts connections, and let the one that it replaces drain."""
        worker.state, worker.heard = _State.SERVING, CLOCK.monotonic()
        for old in self._workers:
            if old.number == worker.number and old is not worker and old.state is _State.SERVING:
                self._drain(old, signal.SIGHUP)
        if not self._has_served:
            self._has_served = True
            for number in range(2, self._count + 1):
                self._start(number)

    def _relay(self, worker: _WorkerProcess) -> None:
        if not worker.output.relay():
            self._selector.unregister(worker.output.pipe)

    def _reap(self) -> None:
        for worker in list(self._workers):
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: _WorkerProcess, code: int) -> None:
        if worker.problem is None and worker.state is _State.STARTING and worker.control in self._selector.get_map():
            self._hear(worker)  # its last words may still wait
        self._forget(worker)
        if self._is_stopping or worker.state is _State.DRAINING:
            if code:
                _LOG.error("%s %s while it drained", worker, _how(code))
            return
        if worker.state is _State.STARTING and self._is_hopeless(worker, code):
            return
        is_steady = CLOCK.monotonic() - worker.started >= _STEADY and worker.state is _State.SERVING
        failures = 0 if is_steady else worker.failures
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**failures)
        _LOG.error("%s %s: it is started again in %g s", worker, _why(worker, code), pause)
        self._restarts.append(_Restart(worker.number, CLOCK.monotonic() + pause, failures + 1))

    def _is_hopeless(self, worker: _WorkerProcess, code: int) -> bool:
        """Return whether a worker that could not start needs no successor."""
        if not self._serving():
            self._error = worker.problem or SystemExit(code if code > 0 else _FAULT)
            if self._has_served:
                _LOG.error("%s %s, and no other worker serves: the gateway ends", worker, _why(worker, code))
            self._stop(is_again=False)
            return True
        if any(other.number == worker.number and other.state is _State.SERVING for other in self._workers):
            self._rolling.clear()
            self._config = self._previous  # a worker that dies later is started with what is known to work
            _LOG.error("%s %s: the old one goes on, and no further worker is replaced", worker, _why(worker, code))
            return True
        return False

    def _forget(self, worker: _WorkerProcess) -> None:
        self._workers.remove(worker)
        for end in (worker.control, worker.output.pipe):
            with suppress(KeyError):
                self._selector.unregister(end)
        worker.output.finish()
        worker.control.close()
        try:
            self._share.end(worker.column)
        except OSError as error:  # a full disk must not end the gateway
            _LOG.error("the last figures of %s are lost: %s", worker, error)
        self._columns.append(worker.column)

    @contextmanager
    def _signals_caught(self) -> Generator[None]:
        waking, wakes = socket.socketpair()
        for end in (waking, wakes):
            end.settimeout(0)
        self._selector.register(waking, selectors.EVENT_READ, lambda: waking.recv(4096))
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        previous = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            waking.close()
            wakes.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signals.append(number)


def _why(worker: _WorkerProcess, code: int) -> str:
    if worker.problem is not None:
        return f"could not start: {worker.problem}"
    return f"could not start: it {_how(code)}" if worker.state is _State.STARTING else _how(code)


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def usable_cores() -> int:
    """Return how many cores this process may use: those that it is bound to, within the quota of its container."""
    bound = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(bound, -(-int(quota) // int(period))))
    except (OSError, ValueError):  # another system, or `max`: no quota
        return bound
