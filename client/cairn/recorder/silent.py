"""What other ranks get: it records nothing, but links the tracker run that some frameworks open on the last rank. In a
drill every rank gets one, which does nothing at all.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

LOOK_SECONDS = 5.0


class Silent:
    """The calls of `Recorder`, of which none does anything but look for a tracker now and then. Never raises."""

    def __init__(
        self, project: str, run: str, put: Callable[[dict[str, Any]], bool] | None, where: str = "on this rank"
    ) -> None:
        self.project, self.run, self.key = project, run, ""
        self._put, self._where = put, where
        self._pid = os.getpid()
        self._linked: list[dict[str, str]] = []
        self._look_at = 0.0
        self._look()

    def saving(self, step: Any, **_: Any) -> bool:
        return self._look()

    def saved(self, path: Any = None, **_: Any) -> bool:
        return self._look()

    def log(self, step: Any, given: Any = None, /, **_: Any) -> None:
        self._look()

    def scored(self, step: Any, scores: Any, **_: Any) -> bool:
        return self._look()

    def resume_receipt(self, checkpoint: Any = None, **_: Any) -> bool:
        return self._look()

    def flush(self, seconds: float = 30.0) -> bool:
        return True

    def finish(self, state: str = "finished", **_: Any) -> None:
        self._look_at = 0.0
        self._look()

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def __repr__(self) -> str:
        return f"<cairn run {self.project}/{self.run}, not recorded {self._where}>"

    def _look(self) -> bool:
        """Always False: nothing of the call is recorded."""
        now = time.monotonic()
        if self._put is None or now < self._look_at or os.getpid() != self._pid:
            return False
        self._look_at = now + LOOK_SECONDS
        try:
            from cairn.capture.trackers import active_trackers

            for each in active_trackers():
                if each not in self._linked:
                    self._linked.append(each)
                    self._put({"project": self.project, "run": self.run, "trackers": [each]})
        except Exception:  # a rank that records nothing must not fail for it
            self._put = None
        return False


@functools.lru_cache(maxsize=1)
def nothing() -> Silent:
    """For a run that cannot be recorded at all."""
    return Silent("", "", None)
