"""`cairn.json` beside a checkpoint: what the registry knew of it when it was committed.

    {"cairn": 1, "id": ..., "project": ..., "run": {"id": ..., "name": ...}, "attempt": 1, "step": 1000,
     "kind": "archive", "pieces": {...}, "scores": [...], "parents": [...], "manifest": [{"path", "bytes", "digest"}]}

The words are those of the API. The files are believed before it: where they differ, that is said.
"""

from dataclasses import replace
from typing import Any

from cairn.formats.checkpoints import cairn_json
from cairn.formats.checkpoints.cairn_json_shape import CURSOR_RECORDED, NAME, SAID_BY_TRAINING
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Pieces,
    PositionEvidence,
    Presence,
    Problem,
    Unreadable,
)
from cairn.formats.checkpoints.source import Listing


def by_its_word(listing: Listing) -> Inspection | None:
    """What `cairn.json` says of files that none knows; None without one. Raises `Unreadable` where it is unsound."""
    if cairn_json.read(listing) is None:
        return None
    own = [listing.size(path) for path in listing if path != NAME]
    found = with_identity(Inspection("", listing.root, bytes=sum(own), files=len(own)), listing)
    said = found.identity or {}
    lost = [
        Problem("", f"holds {here:,} {name}, and had {said[word]:,} at the commit")
        for name, word, here in (("files", "file_count", len(own)), ("bytes", "bytes", sum(own)))
        if here < (said.get(word) or 0)
    ]
    if not own:
        raise Unreadable(f"{NAME} is all that is left of it")
    return found.having(problems=(*found.problems, *lost), complete=False) if lost else found


def as_trained(found: Inspection) -> Inspection:
    """The inspection with what the training said of pieces: they may lie elsewhere than in these files, which are no
    proof against it."""
    said = (found.identity or {}).get("pieces") or {}
    claims = {name: claim for name, value in said.items() if (claim := _claimed(value)) and is_trained(claim.evidence)}
    return found.having(pieces=replace(found.pieces, **claims))


def is_trained(evidence: Any) -> bool:
    """Whether the evidence of a piece is the training's word, or a cursor that lies in the record."""
    return isinstance(evidence, str) and evidence.startswith((SAID_BY_TRAINING, CURSOR_RECORDED))


def with_identity(found: Inspection, listing: Listing) -> Inspection:
    """The inspection, completed by what `cairn.json` says and told where the two differ."""
    try:
        said = cairn_json.read(listing)
    except Unreadable as fault:
        return found.having(problems=(*found.problems, Problem(NAME, str(fault))))
    if said is None:
        return found
    found = _with_step(found.having(identity=said), said.get("step"))
    return _with_manifest(_with_pieces(found, said.get("pieces")), said.get("manifest"), listing)


def _with_step(found: Inspection, step: Any) -> Inspection:
    if not isinstance(step, int) or isinstance(step, bool):
        return found
    by_name = found.step_source.startswith("name ")
    if found.step is None:
        return found.having(step=step, step_source=NAME)
    if found.step == step:
        return found
    if by_name:  # content before names
        told = f"{NAME} says step {step}, {found.step_source} says {found.step}"
        return found.having(step=step, step_source=NAME, disagreements=(*found.disagreements, told))
    told = f"{found.step_source} says step {found.step}, {NAME} says {step}"
    return found.having(disagreements=(*found.disagreements, told))


def _with_pieces(found: Inspection, said: Any) -> Inspection:
    if not isinstance(said, dict):
        return found
    findings, told = dict(found.pieces.items()), list(found.disagreements)
    for name, finding in found.pieces.items():
        claim = _claimed(said.get(name))
        if claim is None or claim.state is Presence.UNKNOWN or claim.state is finding.state:
            continue
        if finding.state is Presence.UNKNOWN:
            findings[name] = claim
        else:
            told.append(f"the files say {name} is {finding.state} ({finding.evidence}), {NAME} says {claim.state}")
    return found.having(pieces=Pieces(**findings), disagreements=tuple(told))


def _claimed(value: Any) -> Finding | None:
    state = value.get("state") if isinstance(value, dict) else value
    if state not in {each.value for each in Presence}:
        return None
    how = value.get("position_evidence") if isinstance(value, dict) else None
    position = PositionEvidence(how) if how in {each.value for each in PositionEvidence} else None
    evidence = value.get("evidence") if isinstance(value, dict) else None
    return Finding(Presence(state), evidence or f"{NAME} says so", position)


def _with_manifest(found: Inspection, manifest: Any, listing: Listing) -> Inspection:
    """Files that were there at the commit and are not, or have another size."""
    if not isinstance(manifest, list):
        return found
    missing, problems = list(found.missing), list(found.problems)
    for entry in manifest:
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            continue
        size = entry.get("bytes")
        if path not in listing:
            missing.append(path)
        elif isinstance(size, int) and size != listing.size(path):
            problems.append(Problem(path, f"has {listing.size(path):,} bytes; it had {size:,} at the commit"))
    whole = len(missing) == len(found.missing) and len(problems) == len(found.problems)
    complete = found.complete if whole else False
    return found.having(missing=tuple(dict.fromkeys(missing)), problems=tuple(problems), complete=complete)
