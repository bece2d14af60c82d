"""Keep the single results behind scores that were recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.samples.packing import Keys, Values, arrange, pack_keys, pack_values
from registry.evals.scores import NewScore, series_ids
from registry.ids import new_id
from registry.models import ItemSet, SampleResult
from registry.upsert import chunks, insert_missing

MAX_ITEMS: Final = 200_000  # of one score; more than any benchmark has


@dataclass(frozen=True)
class Sampled:
    """A recorded score with what it is the mean of: (the item's hashes, value)."""

    checkpoint_id: int
    score: NewScore
    samples: Sequence[tuple[str, float]]


def keep_samples(session: Session, project_id: int, sampled: Sequence[Sampled]) -> list[str]:
    """Keep the samples of scores that are recorded already; gives notes on those that cannot be kept.

    Sending them again adds nothing. Values that are not finite, fewer than two items and more than MAX_ITEMS are
    left out: no paired test could use them.
    """
    kept: list[tuple[Sampled, Keys, Values]] = []
    notes = []
    for each in sampled:
        problem, arranged = _arranged(each)
        if arranged is None:
            notes.append(f"{each.score.benchmark}.{each.score.metric}: the single items are not kept: {problem}")
        else:
            kept.append((each, *arranged))
    if kept:
        _write(session, project_id, kept)
    return notes


def _arranged(each: Sampled) -> tuple[str, tuple[Keys, Values] | None]:
    if len(each.samples) > MAX_ITEMS:
        return f"{len(each.samples):,} of them, at most {MAX_ITEMS:,} are", None
    keys, values = arrange(each.samples)
    if len(keys) < 2:
        return "fewer than two different ones", None
    if not bool(np.all(np.isfinite(values))):
        return "a value is not finite", None
    return "", (keys, values)


def _write(session: Session, project_id: int, kept: Sequence[tuple[Sampled, Keys, Values]]) -> None:
    series = series_ids(session, project_id, [each.score for each, _, _ in kept])
    sets = _item_sets(session, project_id, [keys for _, keys, _ in kept])
    rows: dict[tuple[int, int, int], dict[str, Any]] = {}
    for each, keys, values in kept:
        encoding, body = pack_values(values)
        key = (each.checkpoint_id, series[each.score.series_key], each.score.identity)
        rows[key] = {
            "project_id": project_id,
            "checkpoint_id": key[0],
            "series_id": key[1],
            "digest": key[2],
            "item_set_id": sets[_digest(keys)],
            "encoding": encoding,
            "body": body,
            "arrival": new_id(),
        }
    insert_missing(session, SampleResult, list(rows.values()))


def _digest(keys: Keys) -> bytes:
    return blake2b(keys.astype("<u8").tobytes(), digest_size=16).digest()


def _item_sets(session: Session, project_id: int, sets: Iterable[Keys]) -> dict[bytes, int]:
    """The id of each set of items, made where missing."""
    by_digest = {_digest(keys): keys for keys in sets}
    found = _known_sets(session, project_id, list(by_digest))
    rows = [
        {"id": new_id(), "project_id": project_id, "digest": digest, "count": len(keys), "body": pack_keys(keys)}
        for digest, keys in by_digest.items()
        if digest not in found
    ]
    if rows:
        insert_missing(session, ItemSet, rows)
        found |= _known_sets(session, project_id, [digest for digest in by_digest if digest not in found])
    return found


def _known_sets(session: Session, project_id: int, digests: Sequence[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for chunk in chunks(digests):
        query = select(ItemSet.digest, ItemSet.id).where(ItemSet.project_id == project_id, ItemSet.digest.in_(chunk))
        found.update(session.execute(query).all())
    return found
