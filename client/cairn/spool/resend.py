"""What the service has refused, sent again when a person has mended the cause."""

import json
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import CairnError
from cairn.spool.refused import passes

TIMES = ("saved_at", "evaluated_at")
_BY_HAND = "only saves and curves can be sent again from here; what was sent stands in it"


def send_again(client: Client, path: Path, *, without_times: bool = False) -> str:
    """Sends one file of `refused`, and removes it; why it stays where it does, else ''. `without_times`: the service
    takes the time at which it arrives instead, and says so. Raises `CairnError` where the service is away."""
    try:
        said = json.loads(path.read_text("utf-8"))
        record, sent = dict(said["record"]), said["sent"]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        return f"it cannot be read: {fault}"
    try:
        if record.get("kind") in ("saved", "saving") and isinstance(sent, dict):
            client.register_batch([_timeless(sent) if without_times else sent])
        elif record.get("kind") == "points" and isinstance(sent, list):
            client.record_series(client.find_run(str(record.get("project")), str(record.get("run"))), sent)
        else:
            return _BY_HAND
    except CairnError as fault:
        if passes(fault):
            raise
        return str(fault).splitlines()[0]
    path.unlink(missing_ok=True)
    return ""


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    scores = {"scores": _timeless(value["scores"])} if "scores" in value else {}
    return {name: each for name, each in value.items() if name not in TIMES} | scores
