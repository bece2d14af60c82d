"""`Recorder`: what a training loop touches. No call blocks on the registry, and none raises."""

import functools
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cairn.capture.secrets import mask_text
from cairn.recorder.course import Course, Record
from cairn.recorder.fields import data_version, score_records
from cairn.recorder.held import held
from cairn.recorder.names import kind_of, now, paths_of
from cairn.recorder.plain import text, whole

F = TypeVar("F", bound=Callable[..., Any])
LOSSES = frozenset({"loss", "train_loss", "train/loss", "lr", "learning_rate", "train/learning_rate"})
STEPS = 2**63  # more the service cannot hold
KEPT_SAVES = 1_000
TRACKER_CALLS = 50  # calls of log between looks for a tracker that was opened late


def harmless(answer: Any, *, after_the_end: bool = False) -> Callable[[F], F]:
    """A call that never raises: what goes wrong in it is warned of once, and `answer` is given instead. So is after the
    run has ended, unless `after_the_end`."""

    def wrap(call: F) -> F:
        @functools.wraps(call)
        def quiet(self: "Recorder", *arguments: Any, **named: Any) -> Any:
            if self._engine.pid != os.getpid() or (self._finished and not after_the_end):
                return answer
            try:
                return call(self, *arguments, **named)
            except Exception as fault:
                self._engine.warn(f"run.{call.__name__} could not record: {type(fault).__name__}: {fault}")
                return answer

        return quiet  # type: ignore[return-value]

    return wrap


class Recorder(Course):
    """One execution of a run, on the rank that records. Made by `cairn.start`."""

    # Calls of the training loop

    @harmless(False)
    def saving(self, step: Any, *, kind: str = "archive") -> bool:
        """A save of this step begins: opens a pending checkpoint, and measures from here to `saved`.

        Answers whether the record is on disk already (see `cairn.spool.writer`).
        """
        at, kind = self._parts.step(step), kind_of(kind)
        if at is None:
            return False
        self._forward(at, kind, is_save=True, paths=None)
        self._pending[at] = time.monotonic()
        return self._put_save(self._checkpoint("saving", at, kind))

    @harmless(False)
    def saved(
        self,
        path: Any = None,
        *,
        step: Any,
        loss: Any = None,
        tokens: Any = None,
        epoch: Any = None,
        lr: Any = None,
        cursor: Any = None,
        cursor_path: Any = None,
        scores: Any = None,
        metrics: Mapping[str, Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        pieces: Mapping[str, Any] | None = None,
        layout: Mapping[str, Any] | None = None,
        config: Any = None,
        data: Any = None,
        kind: str = "archive",
        tier: str | None = None,
        digest: bool | str = False,
        save_seconds: Any = None,
        stall_seconds: Any = None,
        milestone: bool = False,
        notes: str | None = None,
        **more: Any,
    ) -> bool:
        """This step is saved at `path` (or at each of several): a folder, a file, or a URL of an object store.

        `tokens` were seen so far. `cursor` says where in the data training stands, such as a loader's `state_dict()`:
        up to 64 KiB travel with the record, of a larger one its digest (and `cursor_path`, where it is kept). A large
        one is read in the background a moment later, so hand over a copy that nothing changes any more. Numbers of
        other names become metrics.

        Answers whether the record is on disk already: then it outlives this process, however that ends.
        """
        at, kind = self._parts.step(step), kind_of(kind)
        if at is None:
            return False
        paths = self._parts.kept("path", lambda: paths_of(path)) or []
        if self._same_again(at, kind, paths):
            writer = self._engine.writer
            return self._scored(at, scores, kind) if scores is not None else not (writer.waiting or writer.lost)
        self._forward(at, kind, is_save=True, paths=paths)
        numbers = {"loss": loss, "lr": lr, "epoch": epoch, "save_seconds": save_seconds, "stall_seconds": stall_seconds}
        record = self._checkpoint("saved", at, kind) | self._parts.numbers(numbers)
        record |= self._parts.given(tags=tags, layout=layout, config=config)
        if (seen := whole(tokens)) is not None:
            record["tokens_seen"] = seen
        elif tokens is not None:
            self._parts.left_out(["tokens"])
        parts: dict[str, Callable[[], Any] | None] = {  # None for what was not handed over: most calls say little
            "metrics": (lambda: self._parts.metrics({**(metrics or {}), **more}))
            if metrics is not None or more
            else None,
            "pieces": None if pieces is None else lambda: self._parts.pieces(pieces),
            "scores": None if scores is None else lambda: score_records(scores, self._parts.left_out),
            "data_version": None if data is None else lambda: data_version(data),
            "digest": None if digest is False else lambda: digest if isinstance(digest, str) else bool(digest),
            "milestone": None if milestone is False else lambda: bool(milestone),
            "notes": None if notes is None else lambda: mask_text(text(str(notes))),
        }
        found = {name: self._parts.kept(name, make) for name, make in parts.items() if make}
        record |= {"paths": paths, **{name: value for name, value in found.items() if value}}
        if type(tier) is str and tier in ("local", "shared", "object"):
            record["tier"] = tier
        self._saves = [*self._saves[-KEPT_SAVES:], (self.key, at, kind)]
        self._announced[at, kind] = tuple(paths)
        return self._put_with_cursor(record, cursor, cursor_path)

    @harmless(None)
    def log(self, step: Any, given: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        """Numbers of one step, such as `loss=..., lr=...` (or a mapping): points of the run's curves.

        They are on disk before the next save is, and half a second later at most. A tensor on a GPU is copied there
        and read in the background, so that training does not wait for it.
        """
        at = step if type(step) is int and 0 <= step < STEPS else self._parts.step(step)
        if at is None:
            return
        if given is not None:
            values.update(given)
        for name, value in values.items():
            if type(value) is not float and type(value) is not int:
                values[name] = held(value)
            if name in LOSSES:
                if at < self._last_logged.get(name, -1):
                    self._forward(at, "archive", is_save=False, paths=None)
                self._last_logged[name] = at
        if self._first_logged is None:
            self._first_logged = at
        self._last_step = at
        self._points.add(at, values)
        self._calls += 1
        if self._calls % TRACKER_CALLS == 1:
            self._look_for_trackers()

    @harmless(False)
    def scored(self, step: Any, scores: Any, *, kind: str = "archive") -> bool:
        """Scores of a checkpoint that was saved earlier, by this attempt or by those from which it went on:
        `{"gsm8k": 0.61}`, or a list of results."""
        at = self._parts.step(step)
        return False if at is None else self._scored(at, scores, kind_of(kind))

    @harmless(False)
    def resume_receipt(self, checkpoint: Any = None, **said: Any) -> bool:
        """Which pieces were really restored; see `cairn.resume_receipt`."""
        from cairn.recorder.receipts import receipt_body

        body = {**receipt_body(checkpoint, self._parts.left_out, **said), "restored_at": now()}
        return self._put({"kind": "receipt", "key": self.key, "body": body})

    @harmless(False, after_the_end=True)
    def flush(self, seconds: float = 30.0) -> bool:
        """Waits until the service has everything: True only then. False where `seconds` were not enough, or where the
        service has refused a record of this process (`cairn spool list` says which). Not for a training loop."""
        return self._engine.flush(seconds)

    @harmless(None)
    def finish(self, state: str = "finished", *, exit_code: int | None = None) -> None:
        """The execution ends: `finished`, `failed` or `stopped`. Nothing is recorded of it afterwards."""
        self._points.write_tail()
        state = state if state in ("finished", "failed", "stopped") else "stopped"
        changes: Record = {"state": state, "ended_at": now()}
        if type(exit_code) is int and -(2**31) <= exit_code < 2**31:
            changes["exit_code"] = exit_code
        elif exit_code is not None:
            self._parts.left_out(["exit_code"])
        if self._last_step is not None:
            changes["step"] = self._last_step
        self._put({"kind": "finish", "key": self.key, "changes": changes})
        self._finished = True

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        stopped = kind is not None and issubclass(kind, (KeyboardInterrupt, SystemExit))
        self.finish("finished" if kind is None else "stopped" if stopped else "failed")

    def __repr__(self) -> str:
        return f"<cairn run {self.project}/{self.run}>"

    def at_exit(self) -> None:
        """The process ends and nobody called `finish`. An error that ended it is told; why else it ends is not known
        here, so that nothing but the end is recorded."""
        if self._finished:
            return
        error = getattr(sys, "last_value", None)
        self.finish("failed" if error is not None else "stopped")
