"""Shapes of lineage."""

import json
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import Final

from api.schemas.common import Answer, CheckpointRef, Id
from registry.checkpoints.identities import Identities
from registry.ids import to_text
from registry.lineage import Edge

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


class EdgeOut(Answer):
    """`child` came from `parent`. Over a lossless edge the weights have the same values."""

    child: Id
    parent: Id
    relation: str
    lossless: bool


class LineageOut(Answer):
    """Where a checkpoint comes from and what came from it; `checkpoints` describes every id that the edges name."""

    checkpoint: CheckpointRef
    ancestors: list[EdgeOut]
    descendants: list[EdgeOut]
    checkpoints: list[CheckpointRef]


def lineage_json(target: int, up: list[Edge], down: list[Edge], known: Identities) -> bytes:
    """The answer as JSON, written plainly: a chain may have 10,000 members, whose validation would take most of the
    time. A test holds it against LineageOut."""
    text = {row.id: to_text(row.id) for row in known.rows}
    projects = {number: json.dumps(name, ensure_ascii=False) for number, name in known.projects.items()}
    runs = {
        number: f'{{"id":"{to_text(number)}","name":{json.dumps(name, ensure_ascii=False)}}}'
        for number, name in known.runs.items()
    }
    rows = {
        row.id: f'{{"id":"{text[row.id]}","project":{projects[row.project_id]},"run":{runs[row.run_id]},'
        f'"attempt":{row.attempt},"step":{row.step},"kind":"{row.kind}",'
        f'"saved_at":"{time_text(row.saved_micros)}"}}'
        for row in known.rows
    }
    members = (
        f'"checkpoint":{rows[target]}',
        f'"ancestors":[{",".join(_edges(up, text))}]',
        f'"descendants":[{",".join(_edges(down, text))}]',
        f'"checkpoints":[{",".join(rows.values())}]',
    )
    return f"{{{','.join(members)}}}".encode()


def time_text(micros: int) -> str:
    """A time as answers write it, from microseconds since 1970; by way of a datetime it takes three times as long."""
    seconds, fraction = divmod(micros, 1_000_000)
    days, clock = divmod(seconds, 86_400)
    rest = f".{fraction:06}" if fraction else ""
    return f"{_day_text(days)}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}{rest}Z"


@lru_cache(maxsize=1_000)
def _day_text(days: int) -> str:
    return date.fromordinal(_EPOCH_DAY + days).isoformat()


def _edges(edges: list[Edge], text: dict[int, str]) -> Iterator[str]:
    ends = {
        relation: f'"relation":"{relation}","lossless":{"true" if Edge(0, 0, relation).lossless else "false"}}}'
        for relation in {edge.relation for edge in edges}
    }
    return (
        f'{{"child":"{text[child]}","parent":"{text[parent]}",{ends[relation]}' for child, parent, relation in edges
    )
