"""Shapes of lineage."""

import json
from collections.abc import Sequence
from typing import Final

import numpy as np

from api.schemas.common import Answer, CheckpointRef, Id
from registry.checkpoints.identities import Identities
from registry.ids import ALPHABET, LENGTH, to_text
from registry.lineage import Edge, EdgeRow

_LETTERS: Final = np.frombuffer(ALPHABET.encode("utf-32-le"), np.uint32)
_SHIFTS: Final = np.arange(5 * (LENGTH - 1), -1, -5)


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


def lineage_json(target: int, up: list[EdgeRow], down: list[EdgeRow], known: Identities) -> bytes:
    """The answer as JSON, written plainly: a chain may have 10,000 members, whose validation would take most of the
    time. A test holds it against LineageOut."""
    ids, owners, run_ids, attempts, steps, kinds, times = zip(*known.rows, strict=True)
    texts = to_texts(ids)
    text = dict(zip(ids, texts, strict=True))
    projects = {number: json.dumps(name, ensure_ascii=False) for number, name in known.projects.items()}
    runs = {
        number: f'{{"id":"{to_text(number)}","name":{json.dumps(name, ensure_ascii=False)}}}'
        for number, name in known.runs.items()
    }
    rows = [
        f'{{"id":"{identity}","project":{projects[owner]},"run":{runs[run]},"attempt":{attempt},"step":{step},'
        f'"kind":"{kind}","saved_at":"{saved_at}"}}'
        for identity, owner, run, attempt, step, kind, saved_at in zip(
            texts, owners, run_ids, attempts, steps, kinds, time_texts(times), strict=True
        )
    ]
    answer = (
        f'{{"checkpoint":{rows[ids.index(target)]}'
        f',"ancestors":[{",".join(_edges(up, text))}]'
        f',"descendants":[{",".join(_edges(down, text))}]'
        f',"checkpoints":[{",".join(rows)}]}}'
    )
    return answer.encode()


def to_texts(ids: Sequence[int]) -> list[str]:
    """`to_text` of many ids: five bits a letter."""
    letters = _LETTERS[np.array(ids, np.int64)[:, None] >> _SHIFTS & 31]
    return list(letters.view(f"U{LENGTH}").ravel().tolist())


def time_texts(micros: Sequence[int]) -> list[str]:
    """Times as answers write them, from microseconds since 1970; by way of datetimes it takes many times as long."""
    moments = np.array(micros, np.int64).view("M8[us]")
    return [f"{each.removesuffix('.000000')}Z" for each in np.datetime_as_string(moments).tolist()]


def _edges(edges: list[EdgeRow], text: dict[int, str]) -> list[str]:
    ends = {
        relation: f'"relation":"{relation}","lossless":{"true" if Edge(0, 0, relation).lossless else "false"}}}'
        for relation in {relation for _, _, relation in edges}
    }
    return [
        f'{{"child":"{text[child]}","parent":"{text[parent]}",{ends[relation]}' for child, parent, relation in edges
    ]
