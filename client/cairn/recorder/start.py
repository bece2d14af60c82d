"""`cairn.start`: begins to record an execution of a run, on rank 0; other ranks get what does nothing."""

import logging
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cairn.capture import scheduler
from cairn.capture.formation import Formation, formed_key, this_formation
from cairn.capture.secrets import mask, mask_command, mask_text
from cairn.capture.trackers import active_trackers
from cairn.drilled import MARK, drilled
from cairn.recorder.engine import engine
from cairn.recorder.fields import data_version, tag_texts
from cairn.recorder.names import curve_name, host, new_key, now
from cairn.recorder.plain import Plain, text, whole
from cairn.recorder.run import Recorder
from cairn.recorder.silent import Silent, nothing

_log = logging.getLogger("cairn")
_PROJECT = re.compile(r"[A-Za-z0-9._-]{1,128}")
CAPTURES = ("git", "machine", "libraries", "scheduler", "layout", "command", "trackers")
_current: Recorder | None = None


def start(
    project: str | None = None,
    run: str | None = None,
    *,
    config: Any = None,
    data: Any = None,
    resumed_from: Any = None,
    restart: bool = False,
    key: str | None = None,
    rank: int | None = None,
    kind: str | None = None,
    owner: str | None = None,
    team: str | None = None,
    model_family: str | None = None,
    parameter_count: Any = None,
    tags: Mapping[str, Any] | None = None,
    reason: str | None = None,
    changes: str | None = None,
    layout: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    nodes: Sequence[str] | None = None,
    code: Mapping[str, Any] | None = None,
    capture: bool | Mapping[str, bool] = True,
    **more: Any,
) -> Recorder | Silent:
    """Begins an execution of a run. Never raises, never waits for the service. In the command of `cairn drill` it
    answers with what records nothing.

    `project` and `run` are names, by default those of CAIRN_RUN (`project/run`), which `cairn exec` sets. `config` may
    be a mapping, an argparse namespace or a data class; secrets in it are masked. `data` is a data version's name, or
    a mix: a weight per source.

    `resumed_from` is what was loaded: a checkpoint's id, its step, its path, `run@step`, or `{run, attempt, step,
    kind}`; `restart=True` says that the run starts over on purpose. Where neither is said and the run has committed
    checkpoints, what was loaded is told from the first step; where that tells nothing, the records wait on disk.

    Found without help, and switched off by `capture={"git": False}` or `capture=False`: git, machine, libraries,
    scheduler, layout, command, trackers. Options of other names are warned of: no training ends over one.
    """
    try:
        return _start(dict(locals()))
    except Exception as fault:
        _log.warning("cairn: nothing will be recorded: %s: %s", type(fault).__name__, fault)
        return nothing()


def resume_receipt(checkpoint: Any = None, **said: Any) -> bool:
    """Says which pieces the execution that was started last really restored.

    `cairn.resume_receipt(pieces={"weights": "restored", "optimizer": "fresh"}, restore_seconds=81)`; each piece is
    restored, absent, fresh or unknown. The checkpoint is the one that `cairn.start(resumed_from=...)` named, unless
    `checkpoint` (an id) or `step`, `attempt`, `kind`, `run` name another.
    """
    recorder = _current
    return recorder.resume_receipt(checkpoint, **said) if recorder is not None else False


def _start(given: dict[str, Any]) -> Recorder | Silent:
    global _current
    project, run = _names(given["project"], given["run"])
    wanted = _wanted(given["capture"])
    first = (scheduler.rank() if given["rank"] is None else int(given["rank"])) == 0
    if drilled():
        if first:
            _log.warning("cairn: nothing is recorded: this is a drill of %s (%s is set).", drilled(), MARK)
        return Silent(project, run, None, "in a drill")
    if not first:
        return Silent(project, run, _put_tracker if wanted["trackers"] else None)
    if given["more"]:
        _log.warning("cairn: cairn.start knows no option %s; it is left out.", ", ".join(map(repr, given["more"])))
    formed = this_formation(f"{project}/{run}")
    started = _record(project, run, given, wanted, formed)
    asked = os.environ.get("CAIRN_ATTEMPT_KEY") if given["key"] is None else given["key"]
    key = curve_name(asked or "") or new_key(scheduler.job_key())
    if formed is not None:
        key = formed_key(key, formed.restart_count, formed.turn)
    _current = Recorder(engine(), project, run, key, started)
    return _current


def _record(
    project: str, run: str, given: dict[str, Any], wanted: Mapping[str, bool], formed: Formation | None
) -> dict[str, Any]:
    """The record of a start. What cannot be read costs no more than itself."""
    plain = Plain()

    def as_object(name: str) -> Any:
        found = plain.of(given[name], name)
        return mask(found if isinstance(found, dict) else {"value": found})

    parts: dict[str, Callable[[], Any]] = {
        **{name: partial(lambda name: mask_text(text(str(given[name]))), name) for name in _TEXTS},
        **{name: partial(as_object, name) for name in ("config", "layout", "environment", "code")},
        "tags": lambda: tag_texts(mask(plain.of(given["tags"], "tags"))),
        "nodes": lambda: [text(str(each)) for each in given["nodes"]],
        "parameter_count": lambda: whole(given["parameter_count"]) or None,
        "data": lambda: data_version(given["data"]),
        "command": lambda: " ".join(mask_command([*sys.orig_argv]))[:60_000] if wanted["command"] else None,
        "trackers": lambda: active_trackers() if wanted["trackers"] else None,
    }
    said: dict[str, Any] = {"project": project, "run": run, "host": host(), "started_at": now()}
    for name, make in parts.items():
        if name in given and given[name] is None:
            continue
        try:
            found = make()
        except Exception:  # whatever an object of somebody else's does
            plain.left_out.append(name)
            continue
        if found is not None:
            said[_NAMES.get(name, name)] = found
    if formed is not None and formed.is_anew:
        said.setdefault("reason", formed.reason)
    said |= _meant(given, plain, formed)
    for place in plain.left_out[:5]:
        engine().warn(f"{place!r} could not be kept as it is: no plain number, text, list or mapping.")
    return {**said, "capture": {name: wanted[name] for name in CAPTURES if name not in ("command", "trackers")}}


_TEXTS = ("kind", "owner", "team", "model_family", "reason", "changes")
_NAMES = {"kind": "run_kind", "data": "data_version"}


def _meant(given: Mapping[str, Any], plain: Plain, formed: Formation | None) -> dict[str, Any]:
    """What the execution goes on from, as far as anybody says it. The environment is that of the job's start: what
    workers that were formed anew have loaded, their steps tell."""
    if given["restart"] is True:
        return {"restart": True}
    origin = given["resumed_from"]
    if origin is None and not (formed is not None and formed.is_anew):
        origin = os.environ.get("CAIRN_RESUMED_FROM")
    if origin is None or (isinstance(origin, str) and not origin):
        return {}
    if (known := _origin(origin, plain)) is not None:
        return {"resumed_from": known}
    unclear = text(f"{Plain().of(origin)!r}")[:200]
    engine().warn(
        f"resumed_from={unclear} names no checkpoint, so what was loaded is recorded as unknown: give a checkpoint's "
        "id, its step, its path, run@step or {run, attempt, step, kind}."
    )
    return {"origin_unclear": unclear}


def _origin(said: Any, plain: Plain) -> Any:
    """In a form that can be written down, None where it names no checkpoint; a path is looked at in the background."""
    if isinstance(said, str) and said.isdigit() and len(said) < 13:  # from the environment; an id is longer
        return int(said)
    if isinstance(said, (str, os.PathLike)):
        return mask_text(text(os.fsdecode(said)))
    if (step := whole(said)) is not None:
        return step
    identity = getattr(said, "id", None)
    if isinstance(identity, str):
        return text(identity)
    found = plain.of(said, "resumed_from") if isinstance(said, Mapping) else None
    is_named = found is not None and (whole(found.get("step")) is not None or isinstance(found.get("id"), str))
    return found if is_named else None


def _names(project: Any, run: Any) -> tuple[str, str]:
    """Names that the service takes. Raises ValueError where there are none."""
    if run is None and os.environ.get("CAIRN_RUN"):
        before, _, run = os.environ["CAIRN_RUN"].partition("/")
        project = project or before
    if not project or not run:
        raise ValueError("cairn.start needs project and run (or CAIRN_RUN=project/run)")
    named, asked = str(project), " ".join(text(str(run)).split())[:512]
    if not _PROJECT.fullmatch(named):
        named = re.sub(r"[^A-Za-z0-9._-]+", "-", named)[:128].strip("-") or "unnamed"
        _log.warning("cairn: the project is recorded as %r: letters, digits, '.', '_' and '-' are taken.", named)
    shown = "".join(letter for letter in asked if letter.isprintable()).strip()
    return named, unicodedata.normalize("NFC", shown) or "unnamed"  # as the service keeps it


def _wanted(capture: Any) -> dict[str, bool]:
    said = capture if isinstance(capture, Mapping) else dict.fromkeys(CAPTURES, bool(capture))
    off = {each.strip() for each in os.environ.get("CAIRN_CAPTURE_OFF", "").split(",")}
    return {name: bool(said.get(name, True)) and name not in off and "all" not in off for name in CAPTURES}


def _put_tracker(record: dict[str, Any]) -> bool:
    """The only record of a rank that does not record: its background begins with it."""
    return engine().writer.append({**record, "kind": "trackers", "key": f"link-{new_key('')}"})
