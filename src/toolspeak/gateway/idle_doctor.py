"""Examines models while their upstream is idle, if the operator sets `[server] doctor_when_idle` (CAP-13).

    idle_doctor.start()                  looks for an idle upstream, in the background
    idle_doctor.note(route, request)     after a turn: its model may be examined later
    await idle_doctor.stop()

An examination takes the server's time for minutes or hours, so it is bounded by users in every way:

- It begins after `IDLE` seconds without a user's turn, and is cancelled, also in the middle of an answer, when one
  begins. All answers are on disk, so that the next examination asks only what is missing.
- Only the model that users asked last is examined on each upstream: Ollama would unload it to load another one, and the
  next user would wait until it is loaded again.
- Only models that the operator named or the upstream lists count, and only upstreams on this machine or its network:
  elsewhere requests cost money, and the time of an idle server is not the operator's.
- One examination runs at a time in all workers. They share a claim, as probes do.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import Final

from toolspeak.config.addresses import is_near
from toolspeak.config.shape import Config
from toolspeak.gateway.access_log import safe_name, safe_words
from toolspeak.gateway.checkups import CheckupProgress, Checkups, CheckupState
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import Subject, Verdicts
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.transport import IN_BACKGROUND
from toolspeak.runtime.upstream_activity import UpstreamActivity

_LOG: Final = logging.getLogger(__name__)
IDLE: Final = 60.0
"""Seconds without a user's turn after which an upstream is idle."""
CHECK: Final = 5.0
"""Seconds between two looks for an idle upstream."""
_STEP: Final = 0.1
"""Seconds between two looks for a user's turn while a model is examined."""
FIRST_WAIT, LONGEST_WAIT = 600.0, 86_400.0
"""Seconds after an examination that has failed, or was interrupted before its first answer. They double each time."""
_RENEWAL: Final = 120.0
"""Seconds after which a claim is taken anew: it would expire after `LONGEST_PROBE`, and another worker would begin."""
_CLAIM: Final = Subject("doctor_when_idle", "")
_MOST: Final = 200
"""Models that are remembered. They exist, but an upstream may list thousands."""


@dataclass(slots=True, eq=False)
class _AskedModel:
    """A model that clients have asked with tools, and when it may be examined."""

    route: Route
    not_before: float = -inf
    """In monotonic seconds."""
    waits: int = 0
    """Examinations in a row that came to nothing."""
    decided: str | None = None
    """The fingerprint of the server on which it was decided; None if it was not."""
    is_announced: bool = False
    """The log says that its examination has begun."""

    def is_due(self, now: float) -> bool:
        if now < self.not_before:
            return False
        if self.decided is None:
            return True
        seen = self.route.learned.verdict(self.route.model).fingerprint  # a look of the prober renews it each hour
        return seen not in ("", self.decided)

    def wait(self, now: float) -> float:
        """Wait before the next examination, longer each time; return for how many seconds."""
        seconds = min(FIRST_WAIT * 2.0 ** min(self.waits, 10), LONGEST_WAIT)
        self.not_before, self.waits = now + seconds, self.waits + 1
        return seconds


class IdleDoctor:
    """Runs the doctor on idle capacity. It does nothing unless `[server] doctor_when_idle` is set."""

    def __init__(
        self,
        config: Config,
        checkups: Checkups,
        activity: UpstreamActivity,
        verdicts: Verdicts,
        clock: Clock = CLOCK,
    ) -> None:
        """Take the examinations that the dashboard shows, users' turns, and the store in which workers share claims."""
        self._checkups: Final = checkups
        self._activity: Final = activity
        self._verdicts: Final = verdicts
        self._clock: Final = clock
        self._asked: Final[OrderedDict[tuple[str, str], _AskedModel]] = OrderedDict()
        """By upstream and model; the one that was asked last is the last."""
        self._last: Final[dict[str, tuple[str, str]]] = {}
        """The model that each upstream was asked for last, with tools or without."""
        self._task: asyncio.Task[None] | None = None
        self._has_started = False
        self._use(config)

    def _use(self, config: Config) -> None:
        self._profiles = config.profiles
        self._places = _idle_places(config)
        if config.server.doctor_when_idle and not self._places:
            _LOG.warning(
                "doctor_when_idle examines no model: it needs profiles, and an upstream on this machine or its network"
            )

    def start(self) -> None:
        """Begin to look for idle upstreams, if the setting is on. Needs a running event loop."""
        self._has_started = True
        if self._places and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def change(self, config: Config) -> None:
        """Use a new configuration. An examination of an upstream that no longer takes part is paused."""
        self._use(config)
        self._asked.clear()  # their routes have the old settings
        self._last.clear()
        if self._has_started:
            self.start()

    async def stop(self) -> None:
        """Pause the examination, and end looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def note(self, route: Route, request: Request) -> None:
        """Remember that a client has asked a model. Never waits."""
        if route.place not in self._places or not route.is_real or not route.profiles.on:
            return
        name = self._last[route.place] = (route.place, route.model)
        asked, route = self._asked.get(name), route.of_tenant("")
        if asked is not None:
            asked.route = route
            self._asked.move_to_end(name)
        elif request.tools:
            self._asked[name] = _AskedModel(route)
            if len(self._asked) > _MOST:
                self._asked.popitem(last=False)

    async def _watch(self) -> None:
        IN_BACKGROUND.set(True)  # in the context of this task, and of the examinations that it starts
        while True:
            await self._clock.sleep(CHECK)
            asked = self._find_due()
            if asked is None:
                continue
            try:
                await self._attend(asked)
            except Exception:  # noqa: BLE001 # no request awaits this task, so its error would be lost
                _LOG.exception("the doctor failed on %s", safe_name(asked.route.identity))
                asked.wait(self._clock.monotonic())

    def _find_due(self) -> _AskedModel | None:
        now, last = self._clock.monotonic(), (self._asked.get(name) for name in self._last.values())
        due = (asked for asked in last if asked is not None and asked.is_due(now))
        idle = (asked for asked in due if self._is_idle(asked.route.place))
        return next((asked for asked in idle if not self._is_stopped(asked.route)), None)

    def _is_stopped(self, route: Route) -> bool:
        """Return whether a person has stopped the doctor on the model's page, and has not started it since."""
        progress = self._checkups.progress(route)
        return progress is not None and progress.state is CheckupState.STOPPED

    def _is_idle(self, place: str) -> bool:
        return place in self._places and self._activity.idle_seconds(place) >= IDLE

    async def _attend(self, asked: _AskedModel) -> None:
        """Examine a model, unless another worker examines one now."""
        claim = _Claim(self._verdicts, self._clock)
        if not await claim.take():
            return
        try:
            if await self._needs_examination(asked) and self._is_idle(asked.route.place):
                await self._examine(asked, claim)
        finally:
            await claim.release()

    async def _needs_examination(self, asked: _AskedModel) -> bool:
        """Return whether an examination could change a plan, and was not decided on this server by this version."""
        from toolspeak.doctor.call_forms import FORMS  # noqa: PLC0415 # its tasks are loaded when they are asked
        from toolspeak.doctor.diagnosis import is_trial_decided, overridden_by_user, results_folder  # noqa: PLC0415
        from toolspeak.doctor.examination import find_fingerprint  # noqa: PLC0415

        route = asked.route
        if route.settings.chat or any(overridden_by_user(route, form) for form in FORMS):
            asked.not_before = inf  # until the configuration changes
            return False
        if not await route.confirm_real():
            asked.wait(self._clock.monotonic())
            return False
        fingerprint = await find_fingerprint(route)
        if is_trial_decided(route, fingerprint, results_folder(self._profiles)):
            asked.decided = fingerprint
            return False
        return True

    async def _examine(self, asked: _AskedModel, claim: "_Claim") -> None:
        """Examine a model until it is decided, a user's turn begins, or another worker has the claim."""
        from toolspeak.doctor.diagnosis import results_folder  # noqa: PLC0415

        route = asked.route
        problem = self._checkups.start(route, results_folder(self._profiles), quick=False, when_idle=True)
        progress = self._checkups.progress(route)
        if problem or progress is None:  # a person has started the doctor
            return
        if not asked.is_announced:
            asked.is_announced = True
            said = safe_name(route.identity), self._activity.idle_seconds(route.place)
            _LOG.info("the doctor examines %s: its upstream has been idle for %.0f s (doctor_when_idle)", *said)
        try:
            while progress.state is CheckupState.RUNNING and self._is_idle(route.place) and await claim.renew():
                await self._clock.sleep(_STEP)
        finally:
            await self._checkups.pause(progress)
        self._judge(asked, progress)

    def _judge(self, asked: _AskedModel, progress: CheckupProgress) -> None:
        """Decide when the model is examined next."""
        now, found = self._clock.monotonic(), progress.diagnosis
        match progress.state:
            case CheckupState.STOPPED:
                pass
            case CheckupState.PAUSED if progress.answers:
                asked.waits = 0
            case CheckupState.ENDED if found is not None and not found.not_saved:
                asked.decided, asked.waits, asked.is_announced = found.looked.fingerprint, 0, False
            case CheckupState.PAUSED:
                # Users leave pauses that are too short for a single task: beginning each time would only heat the room.
                asked.wait(now)
            case CheckupState.ENDED | CheckupState.FAILED | CheckupState.RUNNING:
                problem = progress.problem if found is None else f"the profile is not saved: {found.not_saved}"
                said = safe_name(asked.route.identity), safe_words(problem), asked.wait(now) / 60
                _LOG.warning("the doctor could not examine %s: %s; it tries again in %.0f min", *said)


class _Claim:
    """The right to examine a model, of one worker at a time."""

    def __init__(self, verdicts: Verdicts, clock: Clock) -> None:
        self._verdicts: Final = verdicts
        self._clock: Final = clock
        self._token = ""
        self._until = -inf

    async def take(self) -> bool:
        """Take the claim; return whether it was free."""
        self._token = await self._verdicts.claim(_CLAIM)
        self._until = self._clock.monotonic() + _RENEWAL
        return bool(self._token)

    async def renew(self) -> bool:
        """Return whether the claim is still held; an old one is taken anew."""
        if self._clock.monotonic() < self._until:
            return True
        # Another worker may take it between the two. Then that one goes on with the answers of this one.
        await self.release()
        return await self.take()

    async def release(self) -> None:
        if self._token:
            await self._verdicts.release(_CLAIM, self._token)
            self._token = ""


def _idle_places(config: Config) -> frozenset[str]:
    """Return the upstreams whose models may be examined; none if the setting or profiles are off."""
    if not config.server.doctor_when_idle or config.profiles is None:
        return frozenset()
    return frozenset(each.name for each in config.upstreams if is_near(each.url))
