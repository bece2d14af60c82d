"""Which attempt of its run a new checkpoint, or a new line of a log, belongs to.

An attempt that a supervisor or a recorder opened is taken as it is. Where steps go back and nobody has opened one,
the watcher does, and says that what it loaded is assumed.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from cairn.client import Client
from cairn.errors import NotFound
from cairn.types import Attempt


@dataclass(frozen=True)
class Saved:
    """A checkpoint of the run that is known to have been saved."""

    attempt: int
    step: int


class Attempts:
    """Those of one run, read once a look."""

    def __init__(self, client: Client, project: str, run: str, root: str) -> None:
        self._client, self._project, self._run, self._root = client, project, run, root
        self._known: tuple[Attempt, ...] | None = None

    def newest(self) -> int:
        """The number of the newest attempt; 0 where the run has none yet."""
        return max((each.number for each in self._all()), default=0)

    def started_before(self, time: float | None) -> int:
        """The newest attempt that had started at a time (seconds since 1970); those without a time count."""
        found = [
            each.number
            for each in self._all()
            if time is None or each.started_at is None or each.started_at.timestamp() <= time
        ]
        return max(found, default=0)

    def open(self, step: int, saved: Iterable[Saved], why: str) -> int:
        """A new attempt whose first news is of `step`; answers its number.

        The same news again gives the same attempt: its key is made of the root and the number that it follows.
        """
        number = self.newest() + 1
        where = hashlib.blake2b(self._root.encode("utf-8", "replace"), digest_size=6).hexdigest()
        below = max(((each.attempt, each.step) for each in saved if each.step < step), default=None)
        self._client.create_project(self._project)
        run = self._client.create_run(self._project, self._run)
        made = self._client.start_attempt(
            run,
            key=f"watch-{where}-{number}",
            resumed_from=None if below is None else {"attempt": below[0], "step": below[1]},
            restart=True if below is None else None,
            reason=f"seen by a watcher: {why}; what it loaded is assumed",
        )
        self._known = None
        return made.number

    def _all(self) -> tuple[Attempt, ...]:
        if self._known is None:
            try:
                self._known = self._client.list_attempts(self._client.find_run(self._project, self._run))
            except NotFound:
                self._known = ()
        return self._known
