"""One candidate looked at: what a registration would say of it, and what it would not."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cairn.formats.checkpoints import (
    Inspection,
    Listing,
    Unreadable,
    Unrecognised,
    cairn_json,
    find_format,
    inspect_listing,
    sidecar,
)
from cairn.formats.checkpoints.cairn_json_shape import BEGAN, fault_of
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.shapes import path_text
from cairn.formats.checkpoints.steps import step_from_name
from cairn.formats.checkpoints.words import layout_to_wire, pieces_to_wire
from cairn.scan import names
from cairn.scan.find import Candidate
from cairn.scan.walk import Tree

EVIDENCE_CHARACTERS = 1_000
UNKNOWN_FORMAT = "unknown"  # of a checkpoint by the word of its `cairn.json` alone
# What a registration takes besides identity, pieces, layout and copies; `cairn.json` has them in the same words.
KEPT = (
    *("saved_at", "tokens_seen", "epoch", "loss", "lr", "metrics", "scores", "data_version", "data_cursor", "code"),
    *("config", "environment", "layout", "format", "format_version", "save_seconds", "stall_seconds", "tags"),
    *("milestone", "notes"),
)


@dataclass(frozen=True)
class Look:
    """What was found at one place. `fields` are those of a registration without identity and copies.

    `complete` is None where the files cannot tell; `reason` says what is missing. `ended`: a file shows that the save
    came to its end, so it need not be waited for. `run`, `attempt`, `kind` and `parents` (relation, run, attempt, step,
    kind) are from a `cairn.json`, and so is `began`: what the attempt loaded, or that it restarted, as POST attempts
    takes it. `modified_at` is seconds since the epoch.
    """

    path: str
    folder: str
    name: str
    uri: str
    step: int | None
    complete: bool | None
    temporary: bool
    modified_at: float | None
    bytes: int
    files: int
    format: str
    resumability: str
    parameter_count: int | None
    fields: Mapping[str, Any]
    run: str | None = None
    attempt: int | None = None
    kind: str | None = None
    parents: tuple[Mapping[str, Any], ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    ended: bool = False
    began: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unknown:
    """What cannot be recorded, and why."""

    path: str
    reason: str


def look_at(tree: Tree, candidate: Candidate) -> list[Look | Unknown]:
    """Usually one answer; several where a folder with a step holds models side by side (`step-100/actor`)."""
    if path_text(candidate.path) != candidate.path or not candidate.path.isprintable():
        return [_unknown(candidate, "its name is no UTF-8 or holds control characters, so it cannot be recorded")]
    try:
        return _look(tree, candidate)
    except Unrecognised as fault:
        return [_unrecognised(tree, candidate, str(fault))]
    except Unreadable as fault:
        return [_unknown(candidate, str(fault))]
    except Exception as fault:  # one reader's mistake must not end the scan of a hundred thousand
        return [_unknown(candidate, f"the reader failed: {type(fault).__name__}: {fault}")]


def _look(tree: Tree, candidate: Candidate) -> list[Look | Unknown]:
    listing = _listing(tree, candidate)
    try:
        return [_answer(tree, candidate, inspect_listing(listing))]
    except Unrecognised:
        told = ""
        try:
            if (word := sidecar.by_its_word(listing)) is not None:
                return [_answer(tree, candidate, word)]
        except Unreadable as fault:
            told = str(fault)
        beside = [each for each in listing.folders() if not names.is_inner(each)]
        inner = [each for each in beside if find_format(listing.below(each))]
        if candidate.single or candidate.ranks or not inner:
            if told:
                raise Unreadable(f"of no known format, and its {told}") from None
            raise
    return [each for name in inner for each in _look(tree, _below(candidate, name))]


def _listing(tree: Tree, candidate: Candidate) -> Listing:
    files = sorted(candidate.files, key=lambda each: each.path)
    if candidate.ranks:  # one rank's file speaks for all: it has what the model is, and the step
        first = min(files, key=lambda each: names.rank_group(each.path) or ("", 0))
        return tree.listing(f"{candidate.folder}/{first.path}".lstrip("/"), [first], single=True)
    return tree.listing(candidate.path, files, single=candidate.single)


def _below(candidate: Candidate, name: str) -> Candidate:
    start = f"{name}/"
    files = [replace(each, path=each.path[len(start) :]) for each in candidate.files if each.path.startswith(start)]
    return Candidate(f"{candidate.path}/{name}", f"{candidate.folder}/{name}".lstrip("/"), files)


def _answer(tree: Tree, candidate: Candidate, found: Inspection) -> Look:
    said, wrong = _said(found)
    found = sidecar.as_trained(found) if said else found
    item = cairn_json.to_item(said) if said else {}
    complete, reason = _completeness(candidate, found)
    finished = names.finished_name(candidate.name)
    step = item.get("step", found.step)
    return Look(
        path=candidate.path,
        folder=candidate.folder,
        name=candidate.name or tree.root.rstrip("/").rpartition("/")[2],
        uri=tree.uri(candidate.path),
        step=step if step is not None or finished is None else step_from_name(finished),
        complete=complete,
        temporary=finished is not None,
        modified_at=_newest(candidate),
        bytes=sum(each.bytes for each in candidate.files if each.path != SIDECAR),
        files=sum(each.path != SIDECAR for each in candidate.files),
        format=found.format or item.get("format") or UNKNOWN_FORMAT,
        resumability=str(found.resumability),
        parameter_count=_count(found.parameter_count),
        fields=_fields(found, item, len(candidate.files) if candidate.ranks else None),
        run=item.get("run"),
        attempt=item.get("attempt"),
        kind=item.get("kind"),
        parents=tuple(_parents(said)),
        reason=path_text(reason),
        notes=tuple(path_text(each) for each in (*wrong, *_notes(candidate, found))),
        ended=_has_ended(candidate, found)
        if complete
        else complete is None and not found.format and _was_told(candidate),
        began={name: said[name] for name in BEGAN if said.get(name)},
    )


def _said(found: Inspection) -> tuple[Mapping[str, Any], list[str]]:
    """What a `cairn.json` says, where it is sound, and what is wrong with it."""
    said = found.identity
    if said is None:
        return {}, []
    wrong = fault_of(said) or _of_another_save(found, said)
    return ({}, [f"{SIDECAR} is left aside: {wrong}"]) if wrong else (said, [])


def _of_another_save(found: Inspection, said: Mapping[str, Any]) -> str:
    """A folder that is saved over holds the `cairn.json` of the save before until the next one is recorded. Where the
    two steps differed when it was recorded, its notes say so."""
    step = said["step"]
    if found.step in (None, step) or f"saved as step {step}, but" in (said.get("notes") or ""):
        return ""
    return f"it is of step {step}, and {found.step_source} says {found.step}"


def _parents(said: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those in the same project, by what they are: ids do not outlive a registry."""
    for each in said.get("parents", ()):
        of = each.get("of")
        if of is not None and of["project"] == said["project"]:
            yield {"relation": each["relation"], **{name: of[name] for name in ("run", "attempt", "step", "kind")}}


def _fields(found: Inspection, said: Mapping[str, Any], world_size: int | None) -> dict[str, Any]:
    """What `cairn.json` says counts before what the files say of loss and the like; pieces are what the files have, and
    what the training said of them; with the evidence that was recorded."""
    pieces = {
        name: {**piece, "evidence": piece["evidence"][:EVIDENCE_CHARACTERS]}
        for name, piece in pieces_to_wire(found.pieces).items()
    }
    save_id = found.facts.get("save_id")
    if isinstance(save_id, str):
        pieces = {name: {**piece, "moment": save_id[:512]} for name, piece in pieces.items()}
    if not found.format:
        pieces = {}  # nobody looked at the files
    for name, told in (said.get("pieces") or {}).items():
        piece = {"state": told} if isinstance(told, str) else told
        if piece and (name not in pieces or piece["state"] == pieces[name]["state"]):
            pieces[name] = piece
    layout = layout_to_wire(found.layout)
    if world_size is not None:
        layout.setdefault("world_size", world_size)
    own = {
        "format": found.format or None,
        "format_version": found.format_version,
        "layout": layout,
        **_facts(found.facts),
    }
    kept = {name: said[name] for name in KEPT if said.get(name) not in (None, {}, [], "")}
    fields = {name: value for name, value in {**own, **kept}.items() if value not in (None, {})}
    return {**fields, "pieces": pieces}


def _facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Loss, position and the like, under the names of a registration."""
    consumed = next((facts[each] for each in ("consumed_train_samples", "consumed_samples") if each in facts), None)
    epoch = _number(facts.get("epoch"))
    return {
        "epoch": epoch if epoch is not None and math.isfinite(epoch) else None,
        "loss": _number(facts.get("loss")),
        "lr": _number(facts.get("learning_rate")),
        "tokens_seen": _count(facts.get("tokens_seen")),
        "data_cursor": None if _count(consumed) is None else {"consumed_samples": consumed},
    }


def _completeness(candidate: Candidate, found: Inspection) -> tuple[bool | None, str]:
    if found.complete is not False:
        return (
            (None, f"{candidate.left_out:,} files were not looked at") if candidate.left_out else (found.complete, "")
        )
    if found.missing:
        more = f" and {len(found.missing) - 3:,} more" if len(found.missing) > 3 else ""
        return False, f"missing: {', '.join(found.missing[:3])}{more}"
    fault = next((f"{each.path} {each.reason}".strip() for each in found.problems), "its files disagree")
    return False, fault


def _has_ended(candidate: Candidate, found: Inspection) -> bool:
    """A single file that is whole; or a folder with the file that its format writes last, and nothing newer: where one
    is saved over, that file is at first the old one."""
    if candidate.single:
        return True
    times = {each.path: each.modified_at for each in candidate.files}
    ends = [time for path in found.last_written if (time := times.get(path)) is not None]
    newest = _newest(candidate)
    return bool(ends) and newest is not None and max(ends) >= newest


def _was_told(candidate: Candidate) -> bool:
    """Whether `cairn.json`, which is written once the checkpoint is whole, is newer than its files."""
    told = next((each.modified_at for each in candidate.files if each.path == SIDECAR), None)
    newest = _newest(candidate)
    return told is not None and newest is not None and told >= newest


def _notes(candidate: Candidate, found: Inspection) -> list[str]:
    """What a person should know before it is recorded."""
    told = [*found.disagreements]
    if found.complete is not False:
        told += [f"{each.path} {each.reason}".strip() for each in found.problems]
    if candidate.left_out:
        told.append(f"{candidate.left_out:,} files beyond the first {len(candidate.files):,} were not looked at")
    return told


def _newest(candidate: Candidate) -> float | None:
    """When the newest file was written; `cairn.json` is written after the checkpoint is whole."""
    times = [each.modified_at for each in candidate.files if each.path != SIDECAR and each.modified_at is not None]
    return max(times, default=None)


def _unknown(candidate: Candidate, reason: str) -> Unknown:
    return Unknown(path_text(candidate.path) or ".", path_text(reason))


def _unrecognised(tree: Tree, candidate: Candidate, reason: str) -> Look | Unknown:
    """A folder that its name calls a checkpoint may be one that has only been begun: its age decides later."""
    name = names.finished_name(candidate.name) or candidate.name
    step = step_from_name(name)
    examples = ", ".join(path_text(each.path) for each in candidate.files[:3])
    short = f"of no known format ({len(candidate.files):,} files: {examples})" if candidate.files else reason
    if step is None:
        return _unknown(candidate, short)
    return Look(
        path=candidate.path,
        folder=candidate.folder,
        name=candidate.name,
        uri=tree.uri(candidate.path),
        step=step,
        complete=False,
        temporary=name != candidate.name,
        modified_at=_newest(candidate),
        bytes=sum(each.bytes for each in candidate.files),
        files=len(candidate.files),
        format="",
        resumability="unknown",
        parameter_count=None,
        fields={},
        reason=short,
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(value: Any, least: int = 0) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
    return value if is_count else None
