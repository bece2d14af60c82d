"""What a spool holds and the service has not acknowledged, in the order in which it was written.

Records belong to streams, one per attempt (`key`): within a stream the order is kept, and one that has to wait (a
decision of a person, a missing permission) does not hold up the others. `done` remembers per stream how far the
service has acknowledged. It may lag behind after a crash: what is then sent again changes nothing.
"""

import json
import os
import shutil
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cairn.spool.frames import Framed, frame, payload, read_frames
from cairn.spool.numbers import Numbers
from cairn.spool.segments import Segments
from cairn.spool.service import is_same

QUEUED = 500
KEPT_SEGMENTS = 2  # the newest stay, so that the last points before a crash can still be read
Record = dict[str, Any]


@dataclass
class Stream:
    """How far one attempt has been sent, and what the service calls it."""

    done: int = 0
    facts: dict[str, Any] = field(default_factory=dict)  # project, run, run_id, number, code ...


class Backlog:
    """Reads one spool folder while its writer may still append to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.streams: dict[str, Stream] = self._read_done()
        self.prepared: dict[int, Any] = self._read_prepared()
        self._queue: deque[Framed] = deque()
        self._segments = Segments(folder)
        self._ends: dict[int, dict[str, int]] = {}
        self._left_out = False
        self._why = self.why_waiting(folder)
        self.settled = Numbers()  # which numbers the service has answered for, as far as this object knows

    def follow(self, before: "Backlog") -> None:
        """Goes on in another folder of the same writer: what is known of its streams goes along, on disk at once."""
        self.streams, self.settled = before.streams, before.settled
        for number, each in before.prepared.items():
            self.prepare(number, each["key"], each["body"])
        self.keep()

    def stream(self, key: str) -> Stream:
        return self.streams.setdefault(key, Stream())

    def take(self, most: int, without: Collection[str] = ()) -> list[Framed]:
        """The next records of one stream, at most `most`, none of those in `without`. They stay until `ack`."""
        self._fill(without)
        first = next((each for each in self._queue if each.record["key"] not in without), None)
        if first is None:
            return []
        key = first.record["key"]
        return list(islice((each for each in self._queue if each.record["key"] == key), most))

    def ack(self, key: str, number: int) -> None:
        """The service has the records of the stream up to this one."""
        self.stream(key).done = max(self.stream(key).done, number)
        left: deque[Framed] = deque()
        for each in self._queue:
            if each.record["key"] != key or each.number > number:
                left.append(each)
            else:
                self.settled.add(each.number)
        self._queue = left
        self.settled.add(number)
        for old in [each for each in self.prepared if each <= number]:
            if self.prepared[old].get("key") == key:
                del self.prepared[old]
        self.keep()

    def keep(self, *, durably: bool = False) -> bool:
        """Remembers on disk how far each stream is. Where that fails, more is sent again after a crash. `durably`: it
        outlives the host as well."""
        said = {key: {"done": each.done, "facts": each.facts} for key, each in self.streams.items()}
        scratch = self.folder / ".done"
        try:
            with open(scratch, "w", encoding="utf-8") as file:
                file.write(json.dumps(said))
                if durably:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(scratch, self.folder / "done")
            if durably:
                sync_folder(self.folder)
        except OSError:
            return False
        return True

    def prepare(self, number: int, key: str, body: Any) -> None:
        """Keeps what is about to be sent for a record, so that a repeat says the same to the letter."""
        self.prepared[number] = {"key": key, "body": body}
        try:
            with open(self.folder / "prepared.log", "ab", buffering=0) as file:
                file.write(b"\n" + frame(number, payload(self.prepared[number])))
        except OSError:
            return

    def belongs_to(self, url: str) -> None:
        """Remembers for which service the records are, so that nobody else's gets them."""
        try:
            (self.folder / "service").write_text(url, encoding="utf-8")
        except OSError:
            return

    @staticmethod
    def is_for(folder: Path, url: str) -> bool:
        """Whether the records may go to this service; where nobody has said it yet, they may."""
        said = Backlog.service_of(folder)
        return not said or is_same(said, url)

    @staticmethod
    def service_of(folder: Path) -> str:
        """The address of the service for which the records are; '' where nobody has said it yet."""
        try:
            return (folder / "service").read_text("utf-8").strip()
        except (OSError, ValueError):
            return ""

    def say_why(self, waiting: Mapping[str, str]) -> None:
        """Leaves for whoever looks why streams wait; the same again is not written again."""
        said = "; ".join(dict.fromkeys(waiting.values()))
        if said == self._why:
            return
        self._why = said
        try:
            (self.folder / "waits").write_text(said, encoding="utf-8")
        except OSError:
            return

    @staticmethod
    def why_waiting(folder: Path) -> str:
        """Why records wait there, where somebody has tried to send them; ''."""
        try:
            return (folder / "waits").read_text("utf-8")
        except (OSError, ValueError):
            return ""

    def rewind(self) -> None:
        """After a stream was let go on: what was passed over is read again."""
        if self._left_out:
            self._queue.clear()
            self._segments.rewind()
            self._left_out = False

    def is_empty(self) -> bool:
        """Whether all that stands in the files has been acknowledged."""
        return not any(each.number > self.stream(each.record["key"]).done for each in self.records())

    def count(self) -> int:
        """How many records wait."""
        return sum(each.number > self.stream(each.record["key"]).done for each in self.records())

    def records(self) -> Iterator[Framed]:
        """Every record that is still in the files, acknowledged or not."""
        return (each for each in self._segments.all() if isinstance(each.record.get("key"), str))

    def segments(self) -> list[int]:
        return self._segments.numbers()

    def prune(self) -> None:
        """Removes files all of whose records are acknowledged, but not the newest two. What is known of their attempts
        stands nowhere else then: without it nobody could send what follows."""
        old = [number for number in self.segments()[:-KEPT_SEGMENTS] if self._is_spent(number)]
        if not old or not self.keep(durably=True):
            return
        for number in old:
            self._segments.remove(number)
            self._ends.pop(number, None)

    def _is_spent(self, number: int) -> bool:
        ends = self._ends.get(number)
        if number >= self._segments.number or ends is None:
            return False
        return all(last <= self.stream(key).done for key, last in ends.items())

    def remove(self) -> None:
        """Throws the folder away. Only for one that is empty."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _fill(self, without: Collection[str]) -> None:
        if without:
            kept = deque(each for each in self._queue if each.record["key"] not in without)
            self._left_out |= len(kept) < len(self._queue)
            self._queue = kept
        while len(self._queue) < QUEUED:
            fresh = self._segments.read_on()
            if fresh is None:
                return
            for each in fresh:
                key = each.record.get("key")
                if not isinstance(key, str):
                    self.settled.add(each.number)
                    continue
                ends = self._ends.setdefault(self._segments.number, {})
                ends[key] = max(ends.get(key, 0), each.number)
                if each.number <= self.stream(key).done:
                    self.settled.add(each.number)
                    continue
                if key in without:
                    self._left_out = True
                else:
                    self._queue.append(each)

    def _read_done(self) -> dict[str, Stream]:
        try:
            said = json.loads((self.folder / "done").read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        found = {key: _stream(each) for key, each in said.items()} if isinstance(said, dict) else {}
        return {key: each for key, each in found.items() if each is not None}

    def _read_prepared(self) -> dict[int, Any]:
        try:
            found = read_frames((self.folder / "prepared.log").read_bytes())
        except OSError:
            return {}
        return {
            each.number: each.record
            for each in found
            if isinstance(each.record.get("key"), str)
            and isinstance(each.record.get("body"), dict)
            and each.number > self.stream(each.record["key"]).done
        }


def _stream(said: Any) -> Stream | None:
    """As it was kept; None for what is none. Without the names of its run a number says nothing."""
    try:
        done, facts = int(said["done"]), dict(said["facts"])
    except (ValueError, KeyError, TypeError):
        return None
    is_named = all(isinstance(facts.get(name), str) for name in ("project", "run", "run_id"))
    return Stream(done, facts if is_named and isinstance(facts.get("number"), int) else {})


def sync_folder(folder: Path) -> None:
    """Names that were given or taken in a folder outlive the host. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
