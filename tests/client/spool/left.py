"""Spools as processes that have ended leave them, of records that no call of today would write."""

from pathlib import Path
from typing import Any

from cairn.spool.writer import SpoolWriter

Record = dict[str, Any]
AT = "2026-11-01T10:00:00Z"


def leave(root: Path, *records: Record) -> Path:
    """The folder of a process that wrote these and ended."""
    writer = SpoolWriter([root], lambda said: None)
    writer.tick()
    assert writer.append(*records)
    assert writer.folder is not None
    writer.close()
    writer.release()
    return writer.folder


def start(project: str, run: str = "r", **more: Any) -> Record:
    return {"kind": "start", "key": run, "project": project, "run": run, "host": "h", "started_at": AT, **more}


def saved(project: str, step: Any, run: str = "r", **more: Any) -> Record:
    named = {"kind": "saved", "key": run, "project": project, "run": run, "step": step, "checkpoint_kind": "archive"}
    return {**named, "saved_at": AT, "host": "h", "paths": [], **more}


def points(run: str = "r", **curves: Any) -> Record:
    return {"kind": "points", "key": run, "t": AT, "curves": curves}


def curve(steps: list[int]) -> Record:
    return {"first": 0, "steps": steps, "values": [1.0 for _ in steps]}
