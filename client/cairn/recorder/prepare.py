"""What is sent for a record: what the call said, completed by what the background finds out.

For a spool that another process has left, only what outlived that process is added: the folder of the checkpoint,
where it is on this host or on shared storage. Its environment is gone.
"""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cairn.capture import folder, git, libraries, machine, parallel, scheduler
from cairn.capture.secrets import mask
from cairn.formats.checkpoints import cairn_json
from cairn.formats.checkpoints.cairn_json_shape import CURSOR_RECORDED, SAID_BY_TRAINING
from cairn.formats.checkpoints.shapes import Unreadable
from cairn.pace import rest
from cairn.recorder.origins import FORMS, resume_point
from cairn.recorder.pieces import EVIDENCE_CHARACTERS, pieces_said, state_of

Record = dict[str, Any]
Warn = Callable[[str], None]
_WHICH = ("id", "project", "run", "attempt", "step", "kind", "resumed_from", "restart")
# What `cairn.json` says besides the identity; the words are those of the registration.
_BESIDE = (
    *("saved_at", "tokens_seen", "epoch", "loss", "lr", "metrics", "data_version", "data_cursor", "code", "pieces"),
    *("layout", "format", "format_version", "save_seconds", "stall_seconds", "tags", "milestone", "notes"),
)


class Prepared:
    """Makes bodies for one spool. `own`: it is this process's, so that what this process is may be asked."""

    def __init__(self, warn: Warn, *, own: bool) -> None:
        self._warn, self._own = warn, own

    def start(self, record: Record) -> dict[str, Any]:
        """Bodies of POST /runs and of POST attempts, and the facts that later records need."""
        captured = self._captured(record.get("capture", {})) if self._own else {}
        run = {name: record[name] for name in _RUN_FIELDS if record.get(name) not in (None, {}, [])}
        attempt = {name: record[name] for name in _ATTEMPT_FIELDS if record.get(name) not in (None, {}, [], "")}
        if record.get("run_kind"):
            run["kind"] = record["run_kind"]
        if record.get("config"):
            run["config"] = attempt["config"] = record["config"]
        attempt |= self._origin(record)
        environment = {**captured.get("environment", {}), **record.get("environment", {})}
        if environment:
            attempt["environment"] = mask(environment)
        if captured.get("layout") or record.get("layout"):
            attempt["layout"] = {**captured.get("layout", {}), **(record.get("layout") or {})}
        if not attempt.get("nodes"):
            attempt["nodes"] = captured.get("nodes") or [record["host"]]
        facts: dict[str, Any] = {"again": {name: attempt[name] for name in ("nodes", "command") if name in attempt}}
        if code := {**captured.get("code", {}), **(record.get("code") or {})}:
            facts["code"] = {name: value for name, value in code.items() if name != "branch"}
        if self._own and record.get("capture", {}).get("layout", True) and not record.get("layout"):
            facts["asks_layout"] = True  # once more at each save: at the start a job may not have split anything yet
        if record.get("data_version"):
            facts["data_version"] = record["data_version"]
        return {"run": run, "attempt": attempt, "facts": facts}

    def _origin(self, record: Record) -> Record:
        """What was loaded; where it is said in a way that names no checkpoint, that it is unknown."""
        said = record.get("resumed_from")
        point = None if said is None else resume_point(said, record["project"], record["run"])
        if point is not None:
            return {"resumed_from": point}
        unclear = f"{said!r:.200}" if said is not None else record.get("origin_unclear")
        if not unclear:
            return {}
        why = f"what it loaded is unknown: resumed_from={unclear} names no checkpoint of project {record['project']}"
        if said is not None:  # else the call has said so
            self._warn(f"run {record['run']!r}: {why}. Give {FORMS}.")
        return {"reason": "; ".join(each for each in (record.get("reason"), why) if each)}

    def saved(self, record: Record, facts: Record) -> dict[str, Any]:
        """The item of a batch, without the names of project, run and attempt."""
        item = {name: value for name, value in record.items() if name in _ITEM_FIELDS and value not in (None, {}, [])}
        item["kind"] = record.get("checkpoint_kind", "archive")
        for name in ("code", "data_version"):
            if facts.get(name) and name not in item:
                item[name] = facts[name]
        if record["kind"] == "saving":
            return {**item, "state": "pending"}
        found = self._folder(record)
        layout = parallel.layout() if self._own and facts.get("asks_layout") else {}
        seen = {**({"layout": layout} if layout else {}), **found.fields}
        item = {**seen, **item, "pieces": _pieces(found.fields.get("pieces", {}), record)}
        notes = [*found.notes, *record.get("remarks", ()), *_contradictions(found.fields.get("pieces", {}), record)]
        if notes:
            item["notes"] = "\n".join([*([record["notes"]] if record.get("notes") else []), *notes])[:10_000]
        if told := [*found.notes, *found.remarks]:
            self._warn(f"checkpoint at step {record['step']}: {told[0]}")
        item["state"] = "pending" if found.complete is False else "committed"
        if found.complete is False and "replicas" in item:  # how large half a copy is says nothing of the whole one
            item["replicas"] = [{name: each[name] for name in _PLACE if name in each} for each in item["replicas"]]
        return item

    def again(self, record: Record, item: Record) -> dict[str, Any] | None:
        """The item of an unfinished checkpoint once its files are whole; None while they are not, or are not to be
        seen from here."""
        found = self._folder(record)
        if found.complete is False or "pieces" not in found.fields:
            return None
        pieces = _pieces(found.fields.get("pieces", {}), record)
        return {**item, **found.fields, "pieces": pieces, "state": "committed"}

    def committed(self, item: dict[str, Any], checkpoint_id: str, facts: dict[str, Any]) -> None:
        """Puts `cairn.json` beside the files of a committed checkpoint, where they are a folder of this host."""
        try:
            self._put_beside(item, checkpoint_id, facts)
        except Exception as fault:  # it is recorded, whatever cannot be written beside it
            self._warn(f"cairn.json could not be written beside a checkpoint: {type(fault).__name__}: {fault}")

    def _put_beside(self, item: dict[str, Any], checkpoint_id: str, facts: dict[str, Any]) -> None:
        document = {name: item[name] for name in _BESIDE if item.get(name) not in (None, {}, [], "")}
        document |= {"id": checkpoint_id, "project": facts["project"], "attempt": facts["number"]}
        document |= {"run": {"id": facts["run_id"], "name": facts["run"]}, "step": item["step"], "kind": item["kind"]}
        document |= facts.get("began", {})
        if isinstance(item.get("scores"), list):
            document["scores"] = item["scores"]
        for replica in item.get("replicas", ()):
            path = Path(replica["uri"])
            foreign = replica.get("host") not in (None, socket.gethostname())
            if "://" in replica["uri"] or foreign or not path.is_dir():
                continue
            sizes = () if "format" in document else ("bytes", "file_count")
            known = {name: replica[name] for name in ("digest", "manifest", *sizes) if replica.get(name)}
            self._write_beside(path, {**document, **known})

    def _write_beside(self, path: Path, document: Record) -> None:
        """What cannot stand in `cairn.json` is left out of it; which checkpoint this is always can."""
        try:
            try:
                cairn_json.write(path, document)
            except Unreadable as fault:
                self._warn(f"cairn.json says less than was recorded: {fault}")
                cairn_json.write(path, {name: document[name] for name in _WHICH if name in document})
        except (OSError, Unreadable) as fault:
            self._warn(f"cairn.json could not be written beside a checkpoint: {fault}")

    def _folder(self, record: Record) -> folder.Found:
        here = self._own or record.get("host") == socket.gethostname()
        paths = [path for path in record.get("paths", ()) if isinstance(path, str)]
        if not here:  # another host's disk may hold something else at the same path
            shared = [path for path in paths if "://" in path or folder.tier_of(path) == "shared"]
            if not shared:
                told = [_told(path, record) for path in paths]
                return folder.Found({"replicas": told} if told else {})
            paths = shared
        return folder.describe(paths, tier=record.get("tier"), digest=record.get("digest", False), step=record["step"])

    def _captured(self, wanted: Record) -> dict[str, Any]:
        """What this process is: each part by itself, so that one that fails takes nothing along."""
        said: dict[str, Any] = {"environment": {}}
        for name, find in _PARTS:
            if not wanted.get(name, True):
                continue
            rest()
            try:
                find(said)
            except Exception as fault:
                self._warn(f"{name} could not be captured: {type(fault).__name__}")
        return said


def _pieces(seen: Record, record: Record) -> dict[str, Any]:
    """What the caller says, which may lie elsewhere than in these files; of the rest what the files say; and a cursor
    that travels with the record."""
    pieces = dict(seen)
    for name, said in _said(record).items():
        found = state_of(pieces.get(name))
        if found in ("", "unknown"):
            pieces[name] = said
        elif state_of(said) in ("present", "absent") and found != state_of(said):
            evidence = f"{SAID_BY_TRAINING}; the files say {found}: {pieces[name]['evidence']}"
            pieces[name] = {"state": state_of(said), "evidence": evidence[:EVIDENCE_CHARACTERS]}
    if record.get("cursor_kind") and state_of(pieces.get("data_position")) != "present":
        how = record["cursor_kind"]
        pieces["data_position"] = {"state": "present", "evidence": CURSOR_RECORDED, "position_evidence": how}
    return pieces


def _contradictions(seen: Record, record: Record) -> list[str]:
    """Pieces of which the caller says otherwise than the files: the caller is believed, and it is noted."""
    said = {name: state_of(piece) for name, piece in _said(record).items()}
    if record.get("cursor_kind"):
        said.pop("data_position", None)  # the record itself holds one
    pairs = ((name, state, state_of(seen.get(name))) for name, state in said.items())
    return [
        f"told that {name} is {state}; the files say {found}"
        for name, state, found in pairs
        if {state, found} == {"present", "absent"}
    ]


def _said(record: Record) -> dict[str, Any]:
    """What the caller says of the pieces, each as an object, whatever an older client has written."""
    pieces, _ = pieces_said(record.get("pieces") or {})
    return {name: {"state": piece} if isinstance(piece, str) else piece for name, piece in pieces.items()}


def _told(path: str, record: Record) -> dict[str, Any]:
    return {"uri": path, "tier": record.get("tier") or "local", "host": record.get("host")}


def _code(said: Record) -> None:
    said["code"] = git.code()
    if branch := said["code"].get("branch"):
        said["environment"]["git_branch"] = branch


def _machine(said: Record) -> None:
    said["environment"] |= machine.machine()


def _libraries(said: Record) -> None:
    said["environment"]["libraries"] = libraries.libraries()


def _scheduler(said: Record) -> None:
    said["environment"] |= scheduler.scheduler()
    said["nodes"] = scheduler.nodes()


def _layout(said: Record) -> None:
    said["layout"] = parallel.layout()


_PARTS: tuple[tuple[str, Callable[[Record], None]], ...] = (
    ("git", _code),
    ("machine", _machine),
    ("libraries", _libraries),
    ("scheduler", _scheduler),
    ("layout", _layout),
)
_PLACE = ("uri", "tier", "host")
_RUN_FIELDS = ("owner", "team", "model_family", "parameter_count", "tags", "trackers", "started_at")
_ATTEMPT_FIELDS = ("command", "reason", "changes", "skip", "nodes", "started_at", "restart")
_ITEM_FIELDS = frozenset(
    {"step", "saved_at", "tokens_seen", "epoch", "loss", "lr", "metrics", "scores", "data_version", "data_cursor"}
    | {"code", "config", "layout", "format", "save_seconds", "stall_seconds", "tags", "milestone", "notes", "parents"}
)
