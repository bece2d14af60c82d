"""What a script says of a checkpoint's pieces, in the form that the service takes."""

from collections.abc import Mapping
from typing import Any

from cairn.recorder.plain import text

PIECES = ("weights", "optimizer", "data_position", "random_state")
STATES = ("present", "absent", "unknown")
EVIDENCE_CHARACTERS = 1_000


def pieces_said(said: Any) -> tuple[dict[str, Any], list[str]]:
    """By name a state, or a state with its evidence; and what says nothing. Several names, or a text of them, are
    those that are there: `all`, `weights,optimizer`. Never raises."""
    if isinstance(said, str):
        said = PIECES if said.strip() == "all" else [each.strip() for each in said.split(",")]
    if isinstance(said, (list, tuple, set, frozenset)):
        said = dict.fromkeys(map(str, said), "present")
    if not isinstance(said, Mapping):
        return {}, ["pieces"]
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in said.items():
        piece = _piece(value)
        if name in PIECES and piece is not None:
            kept[str(name)] = piece
        elif value is not None:
            left_out.append(f"pieces.{name}" if isinstance(name, str) else "pieces")
    return kept, left_out


def state_of(piece: Any) -> str:
    """'' where it says none."""
    state = piece.get("state") if isinstance(piece, Mapping) else piece
    return state if isinstance(state, str) else ""


def _piece(value: Any) -> Any:
    if isinstance(value, bool):
        return "present" if value else "absent"
    state = state_of(value)
    if state not in STATES:
        return None
    if not isinstance(value, Mapping):
        return state
    piece = {name: value[name] for name in ("evidence", "moment") if isinstance(value.get(name), str)}
    if value.get("position_evidence") in ("state", "counter"):
        piece["position_evidence"] = value["position_evidence"]
    return {"state": state, **{name: text(each)[:EVIDENCE_CHARACTERS] for name, each in piece.items()}}
