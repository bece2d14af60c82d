"""One drill from beginning to end, and the report of it. A failure is a result; an interruption leaves nothing."""

import contextlib
import platform
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Any

from cairn.capture.libraries import libraries
from cairn.drill.choosing import Target
from cairn.drill.command import Outcome, run_command
from cairn.drill.files import check_files
from cairn.drill.losses import Told
from cairn.drill.reading import Read, StageFailed, read_copy
from cairn.drill.template import Placeholders
from cairn.drilled import environment
from cairn.formats.checkpoints import File
from cairn.stores import is_url, open_source

PREFIX = "cairn-drill-"
Say = Callable[[str], None]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Asked:
    """How to rehearse. `into`: copy into a folder below this one; None: read a path in its place, and a URL into a
    folder for temporary files. `cold`: a command that trains from nothing. Seconds."""

    host: str
    into: Path | None = None
    keep: bool = False
    layout: Mapping[str, int] | None = None
    command: Sequence[str] = ()
    cold: Sequence[str] = ()
    steps: int = 10
    tolerance: float | None = None
    timeout_seconds: float | None = None


@dataclass
class Rehearsal:
    """What `record_drill` is to be told. `kept`: the folder that is left, '' where none is."""

    report: dict[str, Any]
    kept: str = ""
    read: Read | None = None


@dataclass
class _Course:
    """How far a drill has come."""

    checks: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys(("read", "verify", "files", "run"), "not_tried")
    )
    seconds: dict[str, float] = field(default_factory=dict)
    read: Read | None = None
    told: Told = field(default_factory=Told)
    cold: Told = field(default_factory=Told)
    steps_run: int = 0
    reason: str = ""


def rehearse(target: Target, asked: Asked, *, say: Say, progress: Progress) -> Rehearsal:
    """The report, whether it passed or failed. Raises KeyboardInterrupt when it is interrupted (TERM and HUP as well),
    `OutOfReach` where this host can no longer read the copy, OSError and `FetchFailed` where it cannot hold it; the
    temporary folder is gone then."""
    course, began = _Course(), datetime.now(timezone.utc)
    with _interruptible(), _folder(asked) as folder:
        try:
            _rehearse(target, asked, folder, course, say, progress)
        except StageFailed as failure:
            course.checks[failure.stage], course.reason = "failed", failure.reason
        report = _report(target, asked, course, began)
    return Rehearsal(report, str(folder) if asked.keep else "", course.read)


def _rehearse(target: Target, asked: Asked, folder: Path, course: _Course, say: Say, progress: Progress) -> None:
    copied = asked.into is not None or is_url(target.path)
    read = course.read = read_copy(target, folder / "checkpoint" if copied else None, progress)
    course.checks["read"] = "passed"
    course.checks["verify"] = "passed" if read.verified else "not_tried"
    course.seconds["read"] = read.read_seconds
    if read.verify_seconds is not None:
        course.seconds["verify"] = read.verify_seconds
    if check_files(read.path, target.checkpoint):
        course.checks["files"] = "passed"
    if asked.command:
        _run(target, asked, folder, read, course, say)


def _run(target: Target, asked: Asked, folder: Path, read: Read, course: _Course, say: Say) -> None:
    before = None if is_url(read.path) else _listed(read.path)
    out = folder / "losses.jsonl"
    marked = environment(target.name)
    words = Placeholders(read.path, target.step, asked.steps, out).fill(asked.command)
    found = _started(words, out, asked, marked, say)
    course.told = found.told
    _time(course, found)
    course.steps_run = _steps_run(found.told, target.step)
    if found.fault:
        raise StageFailed("run", found.fault)
    if found.told.by_step and course.steps_run < asked.steps:
        raise StageFailed("run", f"the command trained {course.steps_run} of {asked.steps} steps")
    if before is not None and (changed := _changed(before, _listed(read.path))):
        raise StageFailed("run", f"the command changed the copy that it was to load: {changed}")
    course.checks["run"] = "passed"
    if asked.cold:
        cold_out = folder / "cold.jsonl"
        words = Placeholders(read.path, 0, asked.steps, cold_out).fill(asked.cold)
        cold = _started(words, cold_out, asked, marked, say)
        course.cold = cold.told
        if cold.fault:
            say(f"The cold start failed, so what it wrote may be short: {cold.fault}")


def _started(words: Sequence[str], out: Path, asked: Asked, environ: Mapping[str, str], say: Say) -> Outcome:
    say(f"Running {words[0]} for {asked.steps} steps.")
    try:
        return run_command(words, out, asked.timeout_seconds, environ=environ)
    except OSError as fault:
        raise StageFailed("run", f"the command cannot be started: {fault.strerror or fault}") from None


def _time(course: _Course, found: Outcome) -> None:
    """Loading ends with the first loss; a command that wrote none has one time for both."""
    if found.first_loss_seconds is None:
        course.seconds["run"] = found.seconds
    else:
        course.seconds["load"] = found.first_loss_seconds
        course.seconds["run"] = found.seconds - found.first_loss_seconds


def _steps_run(told: Told, step: int) -> int:
    last = max(told.by_step, default=step)
    return last - step if last > step else len(told.by_step)


def _listed(path: str) -> dict[str, File]:
    return {each.path: each for each in open_source(path).listed()[0]}


def _changed(before: Mapping[str, File], after: Mapping[str, File]) -> str:
    """The first file that a command added, removed or wrote to; '' where it left all as they were."""
    return next((path for path in sorted({*before, *after}) if before.get(path) != after.get(path)), "")


def _report(target: Target, asked: Asked, course: _Course, began: datetime) -> dict[str, Any]:
    failed = "failed" in course.checks.values()
    software = {"python": platform.python_version(), **libraries(), **course.told.software} if asked.command else {}
    return {
        "key": uuid.uuid4().hex,
        "host": asked.host,
        "replica_id": target.copy.replica_id,
        "layout": dict(asked.layout or course.told.layout) or None,
        "software": software,
        "started_at": began,
        "ended_at": datetime.now(timezone.utc),
        "seconds": course.seconds,
        "bytes_read": None if course.read is None else course.read.bytes,
        "steps_run": course.steps_run,
        "losses": course.told.losses,
        "cold_losses": course.cold.losses,
        "tolerance": asked.tolerance,
        "checks": course.checks,
        "verdict": "failed" if failed else "passed",
        "reason": course.reason,
    }


@contextlib.contextmanager
def _folder(asked: Asked) -> Iterator[Path]:
    """A folder of our own, gone at the end unless it is to be kept and the drill came to its end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=asked.into))
    whole = False
    try:
        yield folder
        whole = True
    finally:
        if not (whole and asked.keep):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """TERM and HUP end a drill as ^C does, so that nothing is left behind."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    before = {}
    with contextlib.suppress(ValueError):  # not in the main thread, where no signal arrives either
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
