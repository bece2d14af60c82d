"""The thread that tells the service about a job: heartbeats, steps, workers that form anew, how it ended.

It never makes the job wait. While the service is away it tries again with growing pauses, and what must not be lost
lies in a file.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final

from cairn.capture.formation import formed_key
from cairn.causes import guess
from cairn.causes.progress import step_of
from cairn.cli.hints import in_a_line
from cairn.errors import CairnError
from cairn.supervise.excerpt import clean, excerpt
from cairn.supervise.kept import Kept, Request
from cairn.supervise.reform import Formation, Formations
from cairn.supervise.sending import Sending, is_refused, keep_refused, send_all, send_left
from cairn.supervise.tail import Tail

FIRST_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 60.0
Say = Callable[[str], None]


def utc_now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


@dataclass
class Watched:
    """The execution that runs now: the key of its attempt, the end of its log, the last step that it told of."""

    key: str
    tail: Tail
    position: int = 0
    step: int | None = None
    formations: Formations = field(default_factory=Formations)
    formed: list[tuple[Formation, int | None]] = field(default_factory=list)  # to be told of; the last step before each

    @property
    def last_step(self) -> int | None:
        """Of whoever made one last."""
        steps = (self.step, *(step for _, step in reversed(self.formed)))
        return next((step for step in steps if step is not None), None)


class Reporter(threading.Thread):
    def __init__(self, run: str, say: Say, *, heartbeat_seconds: float = 15.0, kept: Kept | None = None) -> None:
        super().__init__(name="cairn-exec", daemon=True)
        self.sending = Sending(run, say)
        self._say, self._heartbeat_seconds = say, heartbeat_seconds
        self._kept = kept or Kept(run)
        self._pending: list[Request] = []
        self._undecided: list[Request] = []  # at the end: what waits for a person's word
        self._watched: Watched | None = None
        self._wake = threading.Event()
        self._idle = threading.Condition()
        self._reading = threading.Lock()
        self._failures, self._retry_at, self._beat_at = 0, 0.0, 0.0
        self._ending, self._closed = False, False
        self._said: set[str] = set()

    # What the supervisor calls

    def begin(self, key: str, body: dict[str, Any], tail: Tail) -> None:
        with self._idle:
            self._pending.append(Request("open", key, body))
            self._watched, self._beat_at = Watched(key, tail), 0.0
        self._wake.set()

    def end(self, changes: dict[str, Any], incident: dict[str, Any] | None) -> None:
        """The job that runs now has ended; its last step is added to both."""
        with self._idle:
            watched, self._watched = self._watched, None
            assert watched is not None
            self._look(watched)
            told = {} if watched.last_step is None else {"step": watched.last_step}
            self._pending.append(Request("end", watched.key, {"heartbeat_at": utc_now(), **changes, **told}))
            if incident is not None:
                self._pending.append(Request("incident", watched.key, {**incident, **told}))
            self._kept.save(self._pending)
        self._wake.set()

    def flush(self, seconds: float) -> bool:
        """Waits until everything was sent, at most so long."""
        self._retry_at = 0.0
        self._wake.set()
        with self._idle:
            return self._idle.wait_for(lambda: not self._pending, seconds)

    def close(self, seconds: float) -> None:
        """Sends what it can within the time; the rest stays in the file."""
        self._ending = True
        if not self.flush(seconds):
            with self._idle:
                safe = self._kept.save([*self._undecided, *self._pending])
            where = (
                "kept for the next `cairn exec` or `cairn spool flush`"
                if safe
                else "lost, since they could not be written either"
            )
            self._say(f"{len(self._pending)} records of this job could not be sent; they are {where}.")
        self._closed = True
        self._wake.set()

    # The thread

    def run(self) -> None:
        self._guarded(self._send_others)
        while not self._closed:
            self._wake.wait(min(self._heartbeat_seconds, 1.0))
            self._wake.clear()
            if time.monotonic() >= self._retry_at:
                self._guarded(self._round)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
            self._failures = 0
        except CairnError as fault:
            self._failures += 1
            pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 8), MAX_PAUSE_SECONDS)
            pause = max(pause * random.uniform(0.5, 1.0), min(fault.retry_after or 0.0, 600.0))  # noqa: S311
            self._retry_at = time.monotonic() + (0.5 if self._ending else pause)
            self._say_once(f"the service is not told of this job for now: {in_a_line(fault)}")
        except Exception as fault:  # a mistake of ours must not end the heartbeats that follow
            self._retry_at = time.monotonic() + MAX_PAUSE_SECONDS
            self._say_once(f"a fault of the supervisor's own: {type(fault).__name__}: {fault}")

    def _round(self) -> None:
        watched = self._watched
        if watched is not None:
            self._look(watched)
            while watched.formed:  # each stays until it could be told: asking for the newest checkpoint may fail
                self._reform(watched, *watched.formed[0])
                del watched.formed[0]
        self._send_pending()
        if watched is not None and watched is self._watched and time.monotonic() >= self._beat_at:
            self._beat(watched)

    def _send_pending(self) -> None:
        with self._idle:
            pending = list(self._pending)
        if not pending:
            return
        ending, self._kept.service = self._ending, self.sending.client.url
        try:
            left = send_all(self.sending, pending, self._say, at_the_end=ending, refused=self._keep_refused)
        except CairnError:
            with self._idle:  # this process may be killed before the service is back
                self._kept.save([*self._undecided, *self._pending])
            raise
        with self._idle:
            self._undecided += left if ending else []
            self._pending = ([] if ending else left) + self._pending[len(pending) :]
            if not self._pending or self._watched is None:
                self._kept.save([*self._undecided, *self._pending])
            self._idle.notify_all()
        if any(each.what == "open" for each in left):
            self._say_once(
                "the run has committed checkpoints and nobody said what this job loaded, so its attempt is not "
                "recorded yet. Say --resumed-from CHECKPOINT, --restart to start over on purpose, or let the job say "
                "it (cairn.start(resumed_from=...))."
            )
            self._retry_at = time.monotonic() + min(self._heartbeat_seconds, 5.0) * (not self._ending)

    def _keep_refused(self, request: Request, fault: CairnError) -> None:
        keep_refused(self._kept.folder, self.sending.name, request, fault)

    def _beat(self, watched: Watched) -> None:
        if not self.sending.is_open(watched.key):
            return
        self._beat_at = time.monotonic() + self._heartbeat_seconds
        try:
            self.sending.beat(watched.key, utc_now(), watched.step)
        except CairnError as fault:
            if not is_refused(fault):
                raise
            self._say_once(f"the service refused a heartbeat: {fault.detail}")

    def _look(self, watched: Watched) -> None:
        """What the job has written since: its last step, and in which formations its workers met anew. A look may come
        late, when those who met have made steps of their own."""
        with self._reading:
            watched.position, lines = watched.tail.after(watched.position)
            for line in lines:
                step = step_of(line)
                watched.step = step if step is not None else watched.step
                formed = watched.formations.read(line)
                if formed is not None:
                    watched.formed.append((formed, watched.step))
                    watched.step = None

    def _reform(self, watched: Watched, formed: Formation, step: int | None) -> None:
        """Another membership is another attempt, with its own layout; what interrupted the old one is an incident."""
        lines = watched.tail.lines()
        found = guess(lines)
        cause = "membership-change" if found.cause == "unknown" else found.cause
        told = {} if step is None else {"step": step}
        evidence = [clean(line) for line in found.evidence]
        incident = {
            "kind": "reformed",
            "key": f"{watched.key}-formed",
            "cause": cause,
            "occurred_at": utc_now(),
            "log_excerpt": excerpt(lines),
            **({"evidence": evidence} if evidence else {}),
            **told,
        }
        opening: dict[str, Any] = {
            "started_at": utc_now(),
            "reason": f"torchrun formed its workers anew ({cause}); it is assumed that they loaded the newest "
            "committed checkpoint",
            "layout": {"world_size": formed.world_size},
        }
        newest = self.sending.newest()
        if newest is not None:
            opening["resumed_from"] = newest
        else:
            opening["restart"] = True
        key = formed_key(watched.key.rpartition("-r")[0] or watched.key, formed.restart_count, formed.turn)
        with self._idle:
            if self._watched is not watched:
                return  # the job has ended meanwhile: nobody would end an attempt that is opened now
            self._pending += [
                Request("end", watched.key, {"state": "stopped", "ended_at": utc_now(), **told}),
                Request("incident", watched.key, incident),
                Request("open", key, opening),
            ]
            watched.key = key

    def _send_others(self) -> None:
        """What earlier jobs on this machine could not send."""
        for left in self._kept.others():
            if left.is_for(self.sending.client.url):
                send_left(left, self.sending.client, self._say)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)
