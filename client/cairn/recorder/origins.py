"""What an execution says it has loaded (`resumed_from`), in the form that the service takes."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cairn.formats.checkpoints import cairn_json
from cairn.formats.checkpoints.shapes import Unreadable
from cairn.formats.checkpoints.steps import step_from_name
from cairn.recorder.plain import whole

FORMS = "a checkpoint's id, its step, its path, run@step, run@attempt.step or {run, attempt, step, kind}"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_AT = re.compile(r"(?:(?P<run>.{1,512})@)(?:(?P<attempt>\d{1,9})\.)?(?P<step>\d{1,19})")
Point = dict[str, Any]


def resume_point(said: Any, project: str = "", run: str = "") -> str | Point | None:
    """An id, or `{run, attempt, step, kind}`; None where it names no checkpoint. A path is read for its `cairn.json`;
    without one the step is that of its name. Of another project nothing can be resumed. Never raises."""
    if isinstance(said, Mapping):
        return _of_mapping(said)
    if isinstance(said, str):
        return _of_text(said, project, run)
    step = whole(said)
    return None if step is None else {"step": step}


def _of_mapping(said: Mapping[Any, Any]) -> str | Point | None:
    identity = said.get("id", said.get("checkpoint_id"))
    if isinstance(identity, str) and _ID.fullmatch(identity):
        return identity
    step = whole(said.get("step"))
    if step is None:
        return None
    run = said.get("run")
    run = run.get("name") if isinstance(run, Mapping) else run
    point: Point = {"step": step, "attempt": whole(said.get("attempt")) or None}
    point |= {"run": run if isinstance(run, str) and run else None}
    point |= {"kind": said["kind"] if said.get("kind") in ("light", "archive") else None}
    return {name: value for name, value in point.items() if value is not None}


def _of_text(said: str, project: str, run: str) -> str | Point | None:
    if not os.path.lexists(said):
        if _ID.fullmatch(said):
            return said
        if (named := _AT.fullmatch(said)) and "://" not in said:
            return _of_notation(named, project, run)
        if "/" not in said:
            return None
    try:
        document = cairn_json.parse(Path(said, "cairn.json").read_bytes())
        return {"run": document["run"]["name"], **{name: document[name] for name in ("attempt", "step", "kind")}}
    except (OSError, Unreadable, ValueError, KeyError, TypeError):
        step = step_from_name(os.path.basename(said.rstrip("/")))
        return None if step is None else {"step": step}


def _of_notation(named: "re.Match[str]", project: str, run: str) -> Point | None:
    """`run@step`, `project/run@step`, `project/run@attempt.step`."""
    name = named["run"]
    if name != run:
        before, slash, after = name.partition("/")
        if slash and before != project:
            return None
        name = after if slash else name
    attempt = {"attempt": int(named["attempt"])} if named["attempt"] else {}
    step = whole(int(named["step"]))
    return None if step is None or not name else {"run": name, **attempt, "step": step}
