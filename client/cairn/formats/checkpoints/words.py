"""An inspection in words for a person, and as plain values for a program."""

from collections.abc import Mapping
from typing import Any

from cairn.formats.checkpoints.shapes import Finding, Inspection, Layout, Pieces, Presence, Resumability, path_text

PIECE_NAMES = {
    "weights": "weights",
    "optimizer": "optimizer",
    "data_position": "data position",
    "random_state": "random state",
}
# What going on without a piece costs.
CONSEQUENCES = {
    "optimizer": "its moments would be forgotten",
    "data_position": "data would be repeated or left out",
}


def headline(found: Inspection) -> str:
    """The answer first: `Resumable: all four pieces, step 41000, 64 ranks`."""
    parts = [_verdict(found), "step unknown" if found.step is None else f"step {found.step}"]
    if ranks := found.layout.world_size:
        parts.append("1 rank" if ranks == 1 else f"{ranks} ranks")
    go_on = found.resumability in (Resumability.EXACT, Resumability.RESUMABLE)
    return (", " if go_on else "; ").join(parts)


def _verdict(found: Inspection) -> str:
    rests = found.resumability
    if found.complete is False:
        count = len(found.missing)
        why = (
            f"{count} {'file is' if count == 1 else 'files are'} missing"
            if count
            else "files are cut short or disagree"
        )
        return f"Incomplete: {why}"
    if rests is Resumability.EXACT:
        return "Resumable: all four pieces"
    if rests is Resumability.RESUMABLE:
        return f"Resumable: {_names(found.pieces, Presence.PRESENT)}; random state {found.pieces.random_state.state}"
    if rests is Resumability.WEIGHTS_ONLY:
        return "Weights only: good to fine-tune or evaluate, not to go on"
    if rests is Resumability.UNKNOWN:
        return f"Unknown whether it can be resumed: {_names(found.pieces, Presence.UNKNOWN)} cannot be told"
    lost = [name for name, finding in found.pieces.items() if finding.state is Presence.ABSENT and name in CONSEQUENCES]
    if found.pieces.weights.state is Presence.ABSENT:
        return "Not resumable: no weights"
    return "Not resumable: " + "; ".join(f"no {PIECE_NAMES[name]}, so {CONSEQUENCES[name]}" for name in lost)


def _names(pieces: Pieces, state: Presence) -> str:
    names = [PIECE_NAMES[name] for name, finding in pieces.items() if finding.state is state]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def to_wire(found: Inspection, *, tensors: bool = False) -> dict[str, Any]:
    """Plain values in the words of the API; `pieces` and `layout` can be sent to it as they are."""
    said: dict[str, Any] = {
        "format": found.format,
        "format_version": found.format_version,
        "root": path_text(found.root),
        "headline": headline(found),
        "resumability": str(found.resumability),
        "step": found.step,
        "step_source": path_text(found.step_source),
        "disagreements": [path_text(each) for each in found.disagreements],
        "complete": found.complete,
        "missing": [path_text(path) for path in found.missing],
        "problems": [{"path": path_text(each.path), "reason": path_text(each.reason)} for each in found.problems],
        "pieces": pieces_to_wire(found.pieces),
        "layout": layout_to_wire(found.layout),
        "parameter_count": found.parameter_count,
        "dtypes": dict(found.dtypes),
        "tensor_count": found.tensor_count,
        "bytes": found.bytes,
        "files": found.files,
        "facts": _plain(found.facts),
        "identity": _plain(found.identity),
    }
    if tensors:
        said["tensors"] = [{**vars_of(each), "shape": list(each.shape)} for each in found.tensors]
    return said


def pieces_to_wire(pieces: Pieces) -> dict[str, dict[str, str]]:
    return {name: _finding_to_wire(finding) for name, finding in pieces.items()}


def _finding_to_wire(finding: Finding) -> dict[str, str]:
    said = {"state": str(finding.state), "evidence": path_text(finding.evidence)}
    return {**said, "position_evidence": str(finding.position)} if finding.position else said


def layout_to_wire(layout: Layout) -> dict[str, Any]:
    """Degrees that the files do not tell are left out; the ZeRO stage is one of the `extra`."""
    said = {name: value for name, value in vars(layout).items() if value is not None}
    extra = {**said.pop("extra"), **({"zero_stage": said.pop("zero_stage")} if "zero_stage" in said else {})}
    return {**said, "extra": _plain(extra)} if extra else said


def vars_of(tensor: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in vars(tensor).items() if value is not None}


def _plain(value: Any, depth: int = 0) -> Any:
    """The same with text that can be sent, whatever a file put there."""
    if isinstance(value, str):
        return path_text(value)
    if isinstance(value, Mapping) and depth < 32:
        return {path_text(str(key)): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and depth < 32:
        return [_plain(each, depth + 1) for each in value]
    return value if value is None or isinstance(value, (bool, int, float)) else path_text(str(value))
