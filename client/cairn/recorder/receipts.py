"""What a resume really restored: evidence that the checkpoint can be gone on from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cairn.numbers import number_to_wire
from cairn.recorder.pieces import PIECES
from cairn.recorder.plain import number, text, whole

STATES = ("restored", "absent", "fresh", "unknown")


def receipt_body(
    checkpoint: Any,
    left_out: Callable[[Sequence[str]], None],
    *,
    run: str | None = None,
    step: Any = None,
    attempt: Any = None,
    kind: str | None = None,
    pieces: Mapping[str, str] | None = None,
    restore_seconds: Any = None,
    note: str | None = None,
) -> dict[str, Any]:
    """The body of POST /resume-receipts, without the attempt that resumed. A checkpoint that is not named is the one
    which the attempt said it has loaded."""
    body: dict[str, Any] = {}
    if isinstance(checkpoint, str):
        body["checkpoint_id"] = checkpoint
    elif isinstance(getattr(checkpoint, "id", None), str):
        body["checkpoint_id"] = checkpoint.id
    else:
        named: dict[str, Any] = {str(name): value for name, value in dict(checkpoint or {}).items()}
        given = {"run": run, "step": whole(step), "attempt": whole(attempt), "kind": kind}
        named |= {name: value for name, value in given.items() if value is not None}
        if named:
            body["checkpoint"] = named
    states = {str(name): str(state) for name, state in (pieces or {}).items()}
    body["pieces"] = {name: state for name, state in states.items() if name in PIECES and state in STATES}
    left_out([f"{name}={state}" for name, state in states.items() if name not in body["pieces"]])
    if (seconds := number(restore_seconds)) is not None:
        body["restore_seconds"] = number_to_wire(float(seconds))
    if note:
        body["note"] = text(str(note))
    return body
