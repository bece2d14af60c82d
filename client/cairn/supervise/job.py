"""One job, from its first start to its last end."""

import os
import re
import shlex
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cairn.capture.scheduler import is_scheduled
from cairn.capture.secrets import mask_command
from cairn.causes import Guess, guess, signal_name
from cairn.drilled import drilled, refuse_in_drill
from cairn.supervise.child import Ended, Signals, run_child
from cairn.supervise.excerpt import clean, excerpt
from cairn.supervise.leftovers import end_leftovers
from cairn.supervise.reporter import Reporter, utc_now
from cairn.supervise.restarts import CannotGoOn, Origin, find_origin, told, wants_a_path
from cairn.supervise.tail import Tail

MAX_BACKOFF_SECONDS: Final = 900.0
FLUSH_SECONDS: Final = 5.0  # what the end of a job, or its next start, waits for the service at most
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell says it
CANNOT_START: Final = (NOT_FOUND, NOT_EXECUTABLE)  # a further start would meet the same


@dataclass(frozen=True)
class Plan:
    """`run` is project/run. `resumed_from`: what the first start loads, as a checkpoint's id; `restart`: it starts
    over on purpose. `require`: pieces that what is loaded must have, unless the usual ones."""

    run: str
    command: Sequence[str]
    retries: int = 0
    backoff_seconds: float = 10.0
    resume_flags: Sequence[str] = ()
    resumed_from: str | None = None
    restart: bool = False
    heartbeat_seconds: float = 15.0
    hardware: str | None = None
    require: Sequence[str] = ()


@dataclass
class _Start:
    """One start of the job: the key of its attempt, what it loads, and the end of its log."""

    key: str
    origin: Origin
    tail: Tail


def say(text: str) -> None:
    """A remark of the supervisor, on standard error between what the job writes there."""
    try:
        os.write(2, f"cairn: {clean(text)}\n".encode())
    except OSError:
        return


def supervise(plan: Plan) -> int:
    """Runs the job, again after a failure as often as the plan allows, and gives the exit code of its last end.

    In the command of a drill it runs it once, and records nothing.
    """
    if drilled():
        return _unrecorded(plan)
    reporter = Reporter(plan.run, say, heartbeat_seconds=plan.heartbeat_seconds)
    reporter.start()
    with Signals() as signals:
        try:
            return _run(plan, reporter, signals)
        finally:
            reporter.close(FLUSH_SECONDS)
            if (incident := reporter.sending.last_incident) and not signals.ended():
                say(f"its interruption is {incident}: `cairn incident show {incident}` says what is known of it.")


def _unrecorded(plan: Plan) -> int:
    path = os.environ.get("CAIRN_RESUME_PATH")
    if path is None and wants_a_path(plan.command, plan.resume_flags) and not plan.restart:
        refuse_in_drill(
            "What to resume from is not looked up: say {path} of the drill, in CAIRN_RESUME_PATH or itself."
        )
    say(f"nothing is recorded of this job: it is part of a drill of {drilled()}.")
    start = _Start("", Origin(path), Tail())
    environ = {**os.environ, "CAIRN_RUN": plan.run}
    with Signals() as signals:
        return _ran(told(plan.command, plan.resume_flags, start.origin), environ, signals, start.tail).code


def _run(plan: Plan, reporter: Reporter, signals: Signals) -> int:
    needed = wants_a_path(plan.command, plan.resume_flags)
    try:
        origin = _first_origin(plan, needed)
    except CannotGoOn as obstacle:
        say(f"the job was not started: {obstacle} Without a checkpoint to load it would start over.")
        return 1
    for started in range(plan.retries + 1):
        start = _Start(f"exec-{uuid.uuid4().hex[:16]}", origin, Tail())
        ended, found = _once(plan, start, reporter, signals, started)
        if ended.code == 0 or signals.ended() or started == plan.retries or ended.code in CANNOT_START:
            if ended.code and started and started == plan.retries:
                told = f"`cairn incident list --run {plan.run}` shows its interruptions."
                say(
                    f"the job ended with {_words(ended)} ({found.cause}), and no start is left of {started + 1}. {told}"
                )
            return ended.code
        pause = min(plan.backoff_seconds * 2.0**started, MAX_BACKOFF_SECONDS)
        say(f"the job ended with {_words(ended)} ({found.cause}); start {started + 2} follows in {pause:g} s.")
        signals.sleep(pause)
        if signals.ended():
            return ended.code
        end_leftovers(start.key, say)
        reporter.flush(FLUSH_SECONDS)  # what has just failed may make its checkpoint suspect
        try:
            origin = find_origin(plan.run, say, needed=needed, require=plan.require)
        except CannotGoOn as obstacle:
            say(f"the job is not started again: {obstacle}")
            return ended.code
    raise AssertionError("unreachable: the last start returns")


def _first_origin(plan: Plan, needed: bool) -> Origin:
    """What the caller says, else what `cairn resume` says where the job is to be told a path."""
    said = plan.resumed_from or os.environ.get("CAIRN_RESUMED_FROM")
    path = os.environ.get("CAIRN_RESUME_PATH")
    if plan.restart:
        return Origin(fresh=True)
    if needed and path is None:
        return find_origin(plan.run, say, needed=True, require=plan.require)
    if said is None:
        return Origin(path)
    if re.fullmatch(r"\d{1,12}", said):
        return Origin(path, {"step": int(said)})
    if re.fullmatch(r"[0-9a-z]{13}", said):
        return Origin(path, said, said)
    return Origin(path or said)  # a path: what lies there, the recorder in the job finds out


def _once(plan: Plan, start: _Start, reporter: Reporter, signals: Signals, earlier: int) -> tuple[Ended, Guess]:
    command = told(plan.command, plan.resume_flags, start.origin)
    reporter.begin(start.key, _opening(plan, command, start.origin, earlier), start.tail)
    ended = _ran(command, _environ(plan, start), signals, start.tail)
    asked = signal_name(signals.asked) if signals.asked is not None else None
    lines = start.tail.lines()
    ending = signal_name(ended.signal) if ended.signal is not None else None
    if ended.code == 0 and asked is None:
        reporter.end({"state": "finished", "ended_at": utc_now(), "exit_code": 0}, None)
        return ended, Guess("unknown")
    found = _cause(ended, lines, ending, asked)
    changes = {"state": "failed" if asked is None else "stopped", "ended_at": utc_now(), "exit_code": ended.code}
    reporter.end(changes, _incident(plan, start, ended, ending, found, lines))
    return ended, found


def _cause(ended: Ended, lines: Sequence[str], ending: str | None, asked: str | None) -> Guess:
    """A bare SIGTERM is the scheduler's where there is one; else a person has sent it."""
    if ended.fault:
        return Guess("configuration", (ended.fault,))
    found = guess(lines, signal=ending, asked=asked)
    if found.cause == "scheduler" and asked == "SIGTERM" and not is_scheduled():
        return Guess("user-interrupt", (*found.evidence, "no scheduler runs this job"))
    return found


def _ran(command: Sequence[str], environ: Mapping[str, str], signals: Signals, tail: Tail) -> Ended:
    try:
        return run_child(command, environ, signals, tail.add)
    except OSError as fault:
        name = os.fsdecode(fault.filename or command[0])
        is_there = isinstance(fault, FileNotFoundError) and os.path.exists(name)
        why = "the program that its first line (#!) names is not there" if is_there else fault.strerror
        said = f"the job cannot be started: {name}: {why}"
        say(said)
        return Ended(NOT_FOUND if isinstance(fault, FileNotFoundError) else NOT_EXECUTABLE, None, said)


def _incident(
    plan: Plan, start: _Start, ended: Ended, ending: str | None, found: Guess, lines: Sequence[str]
) -> dict[str, Any]:
    evidence = [clean(line) for line in found.evidence]
    known = {
        "signal": ending,
        "hardware": plan.hardware,
        "checkpoint_id": start.origin.checkpoint_id,
        "replica_id": start.origin.replica_id,
    }
    return {
        "kind": "crashed",
        "key": start.key,
        "cause": found.cause,
        "evidence": evidence,
        "occurred_at": utc_now(),
        "exit_code": ended.code,
        "node": _node(),
        "log_excerpt": excerpt(lines),
        **{name: value for name, value in known.items() if value is not None},
    }


def _opening(plan: Plan, command: Sequence[str], origin: Origin, earlier: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "command": shlex.join(mask_command(list(command)))[:60_000],
        "nodes": [_node()],
        "started_at": utc_now(),
    }
    if earlier:
        body["reason"] = f"started again by cairn exec, after {earlier} that failed"
    if origin.said is not None:
        body["resumed_from"] = origin.said
    elif origin.fresh:
        body["restart"] = True
    size = _world_size(command)
    if size is not None:
        body["layout"] = {"world_size": size}
    return body


def _environ(plan: Plan, start: _Start) -> dict[str, str]:
    own = {"CAIRN_RUN": plan.run, "CAIRN_ATTEMPT_KEY": start.key}
    inherited = {name: value for name, value in os.environ.items() if name not in _TOLD}
    if start.origin.path is not None:
        own["CAIRN_RESUME_PATH"] = start.origin.path
    loaded = start.origin.said
    if isinstance(loaded, str):
        own["CAIRN_RESUMED_FROM"] = loaded
    elif isinstance(loaded, Mapping) and "step" in loaded:
        own["CAIRN_RESUMED_FROM"] = str(loaded["step"])
    elif start.origin.path is not None:
        own["CAIRN_RESUMED_FROM"] = start.origin.path
    return inherited | own


_TOLD: Final = ("CAIRN_RUN", "CAIRN_ATTEMPT_KEY", "CAIRN_RESUME_PATH", "CAIRN_RESUMED_FROM")


def _world_size(command: Sequence[str]) -> int | None:
    """What torchrun is told, where both numbers are plain: agents times workers on each."""
    text = " ".join(command)
    if not re.search(r"\btorchrun\b|torch\.distributed\.(run|launch)|\baccelerate\b", text):
        return None
    found = [re.search(rf"--{name}[ =](\d+)(?= |$)", text) for name in ("nnodes", "nproc[-_]per[-_]node")]
    if found[1] is None or (found[0] is None and re.search(r"--nnodes", text)):
        return None
    return int(found[1][1]) * (int(found[0][1]) if found[0] is not None else 1)


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE_NAME") or socket.gethostname()


def _words(ended: Ended) -> str:
    return signal_name(ended.signal) if ended.signal is not None else f"exit code {ended.exit_code}"
