"""The course of one execution through its steps: attempts, points and saves, as records in the order in which they
happened."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from cairn.numbers import number_to_wire
from cairn.recorder.cursors import any_cursor, quick_cursor
from cairn.recorder.engine import Engine
from cairn.recorder.fields import score_records
from cairn.recorder.held import Held
from cairn.recorder.names import host, now
from cairn.recorder.parts import Parts
from cairn.recorder.plain import text
from cairn.recorder.points import Points

Record = dict[str, Any]


class Course:
    """What a recorder knows of its execution. Whoever calls decides what a fault costs (`cairn.recorder.run`)."""

    def __init__(self, engine: Engine, project: str, run: str, key: str, started: Record) -> None:
        self.project, self.run, self.key = project, run, key
        self._engine = engine
        self._parts = Parts(engine.warn)
        self._base = key
        self._attempt_count = 1
        self._points = Points(key, engine.writer, engine.warn)
        self._last_logged: dict[str, int] = {}
        self._first_logged: int | None = None
        self._last_saved: int | None = None
        self._last_step: int | None = None
        self._saves: list[tuple[str, int, str]] = []  # key, step, kind of what this process has saved on its path
        self._announced: dict[tuple[int, str], tuple[str, ...]] = {}
        self._pending: dict[int, float] = {}
        self._trackers: list[dict[str, str]] = list(started.get("trackers", ()))
        self._calls = 0
        self._finished = False
        self._put({**started, "kind": "start", "key": key})
        engine.recorders.append(self)

    # What the background asks

    def drain(self) -> None:
        """Writes the points that were logged since the last time."""
        self._points.write()

    def has_points(self) -> bool:
        """Whether some are in no record yet."""
        return self._points.is_waiting()

    def beat(self, client: Any, delivery: Any) -> None:
        """Says that the attempt lives, where the service knows it already. Raises `CairnError`."""
        if self.is_open(delivery):
            facts = delivery.backlog.stream(self.key).facts
            step = {} if self._last_step is None else {"step": self._last_step}
            client.patch_attempt(facts["run_id"], facts["number"], heartbeat_at=now(), **step)

    def is_open(self, delivery: Any) -> bool:
        """Whether the service has numbered the attempt, which still goes on."""
        stream = delivery.backlog.streams.get(self.key) if delivery is not None else None
        return stream is not None and "number" in stream.facts and not self._finished

    # How

    def _put(self, record: Record) -> bool:
        return self._kept(self._engine.writer.append, record)

    def _put_save(self, record: Record) -> bool:
        """Whether it is on disk, and with it all points that were logged before."""
        return self._kept(self._points.write_before, record)

    def _kept(self, keep: Callable[[Record], bool], record: Record) -> bool:
        try:
            return keep(record)
        except (ValueError, TypeError, RecursionError) as fault:
            self._engine.warn(f"a record could not be written as JSON and is lost: {fault}")
            return False

    def _put_with_cursor(self, record: Record, cursor: Any, cursor_path: Any) -> bool:
        slow = {name: value for name, value in record.items() if isinstance(value, Held)}
        quick = {} if cursor is None else quick_cursor(cursor)
        if quick is not None and not slow:
            return self._put_save({**record, **quick})
        kept_at = None if cursor_path is None else text(str(cursor_path))

        def later() -> Record:
            read = {name: value.read() for name, value in slow.items()}
            known = {name: number_to_wire(float(value)) for name, value in read.items() if value is not None}
            fields, why = (quick, "") if quick is not None else any_cursor(cursor, kept_at)
            if why:
                self._engine.warn(f"step {record['step']}: {why}.")
            remarks = {"remarks": [why]} if why else {}
            plain = {name: value for name, value in record.items() if name not in slow}
            return {**plain, **known, **fields, **remarks}

        self._points.write_first()
        self._engine.writer.append_later(later)
        return False

    def _checkpoint(self, word: str, at: int, kind: str) -> Record:
        named = {"kind": word, "key": self.key, "project": self.project, "run": self.run}
        record: Record = {**named, "step": at, "checkpoint_kind": kind, "saved_at": now(), "host": host()}
        if self._first_logged is not None:
            record["began"] = self._first_logged  # its points may lie in another folder of the same process
        began = self._pending.pop(at, None) if word == "saved" else None
        if began is not None:
            record["save_seconds"] = round(time.monotonic() - began, 6)
            # Who opens and closes a save around the call that writes has stood still for as long as it took.
            record["stall_seconds"] = record["save_seconds"]
        self._last_step = at
        return record

    def _scored(self, at: int, scores: Any, kind: str) -> bool:
        said = score_records(scores, self._parts.left_out)
        record = {"kind": "scores", "key": self.key, "step": at, "checkpoint_kind": kind, "scores": said}
        return self._put(record)

    def _same_again(self, at: int, kind: str, paths: Sequence[str]) -> bool:
        """Whether this very save was told already, as some trainers do at their end."""
        return at == self._last_saved and self._announced.get((at, kind)) == tuple(paths)

    def _forward(self, at: int, kind: str, *, is_save: bool, paths: Sequence[str] | None) -> None:
        """Going back in steps opens a new attempt; a save of another kind at the same step does not."""
        last = self._last_saved
        back = not is_save
        if is_save and last is not None:
            again = at == last and (at, kind) in self._announced
            back = at < last or (again and at not in self._pending)
        if back:
            self._new_attempt(at, is_save)
        if is_save:
            self._last_saved = at

    def _new_attempt(self, at: int, is_save: bool) -> None:
        before = self.key
        self._points.write_tail()
        self._put({"kind": "finish", "key": before, "changes": {"state": "stopped", "ended_at": now()}})
        self._attempt_count += 1
        self.key = f"{self._base}.{self._attempt_count}"
        self._points = Points(self.key, self._engine.writer, self._engine.warn)
        self._last_logged, self._announced, self._pending = {}, {}, {}
        self._last_saved = self._first_logged = None
        self._saves = [each for each in self._saves if each[1] < at or (each[1] == at and not is_save)]
        reason = f"steps went back to {at} in the same process"
        record: Record = {"kind": "attempt", "key": self.key, "after": before, "at": now(), "reason": reason}
        if self._saves:
            key, step, kind = max(self._saves, key=lambda each: each[1])
            record["loaded"] = {"key": key, "step": step, "kind": kind}
            record["reason"] += "; what was loaded is assumed: the newest save before"
        self._put(record)

    def _look_for_trackers(self) -> None:
        from cairn.capture.trackers import active_trackers

        for each in active_trackers():
            if each not in self._trackers:
                self._trackers.append(each)
                named = {"project": self.project, "run": self.run}
                self._put({"kind": "trackers", "key": self.key, **named, "trackers": [each]})
