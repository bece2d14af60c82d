"""What the service has refused, sent again when a person has mended the cause."""

import json
from pathlib import Path
from typing import Any

from cairn.calls.base import literal
from cairn.client import Client
from cairn.errors import CairnError, Conflict
from cairn.spool.refused import passes

TIMES = ("saved_at", "evaluated_at")
AMENDED = ("tags", "notes", "milestone", "loss")  # what a recorded checkpoint takes later
_BY_HAND = "only saves and curves can be sent again from here; what was sent stands in it"


def send_again(client: Client, path: Path, *, without_times: bool = False) -> str:
    """Sends one file of `refused`, and removes it; why it stays where it does, else ''. `without_times`: the service
    takes the time at which it arrives instead, and says so. Raises `CairnError` where the service is away."""
    try:
        said = json.loads(path.read_text("utf-8"))
        record, sent = dict(said["record"]), said["sent"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
        return f"it cannot be read: {fault}"
    try:
        if record.get("kind") in ("saved", "saving") and isinstance(sent, dict):
            _register(client, record, _timeless(sent) if without_times else sent)
        elif record.get("kind") == "points" and isinstance(sent, list):
            client.record_series(client.find_run(str(record.get("project")), str(record.get("run"))), sent)
        else:
            return _BY_HAND
    except CairnError as fault:
        if passes(fault):
            raise
        return str(fault).splitlines()[0]
    except (ValueError, KeyError, TypeError) as fault:
        return f"what stands in it cannot be sent: {type(fault).__name__}: {fault}"
    path.unlink(missing_ok=True)
    return ""


def _register(client: Client, record: dict[str, Any], sent: dict[str, Any]) -> None:
    """The save; where it is there without a part that was refused, that part. Raises `CairnError`."""
    left_out = {str(place).partition(".")[0] for place in record.get("left_out", ())}
    try:
        client.register_batch([sent])
    except Conflict:
        if not left_out or not left_out <= {"scores", "replicas", *AMENDED}:
            raise
        names = {"project": "project", "run": "run.name", "attempt": "attempt", "step": "step", "kind": "kind"}
        rule = " and ".join(f"{field} = {literal(sent[name])}" for name, field in names.items())
        (found,) = client.iter_checkpoints(filter=rule)
        if "scores" in left_out:
            client.record_scores(found, sent["scores"])
        if "replicas" in left_out:
            client.add_replicas(found, sent["replicas"])
        if changes := {name: sent[name] for name in AMENDED if name in left_out}:
            client.patch_checkpoint(found, **changes)


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    scores = {"scores": _timeless(value["scores"])} if "scores" in value else {}
    return {name: each for name, each in value.items() if name not in TIMES} | scores
