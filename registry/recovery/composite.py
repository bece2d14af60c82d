"""One figure a checkpoint out of several benchmarks: which of them enter, and their mean on the common scale."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.evals.columns import Column, off_scale
from registry.evals.percentiles import Floats, Integers
from registry.models import ScoreSeries
from registry.recovery.figures import orient_all, standard_errors
from registry.recovery.run_scores import Scores

Series = tuple[int, int]  # (column, series): results that may be compared with each other

SHARED_BY: Final = 0.8  # a benchmark enters a composite where at least this share of the evaluated checkpoints has it
NOTHING: Final = np.empty(0)


def choose(columns: Sequence[Column], found: Mapping[Series, Scores]) -> list[list[Series]]:
    """The members of the composite, one a family, each held by nearly all; of one recorded in parts, all its parts."""
    families: dict[str, list[Series]] = {}
    for key in found:
        families.setdefault(columns[key[0]].benchmark.family, []).append(key)

    def preference(key: Series) -> tuple[int, bool, int, int, str, str, str]:
        column = columns[key[0]]
        skill = column.benchmark.capability not in (None, "lm")
        position = catalogue().position(column.benchmark)
        return -len(found[key]), not skill, column.metric_place, position, column.name, column.metric, column.filter

    members = []
    for keys in families.values():
        whole = [key for key in keys if columns[key[0]].benchmark.part_of is None]
        parts: dict[str, list[Series]] = {}
        for key in keys:
            parts.setdefault(columns[key[0]].benchmark.name, []).append(key)
        members.append(
            [min(whole, key=preference)] if whole else [min(each, key=preference) for each in parts.values()]
        )
    most = max((len(found[key]) for member in members for key in member), default=0)
    common = [[key for key in member if len(found[key]) >= SHARED_BY * most] for member in members]
    return [sorted(member) for member in common if member]


def sample_counts(session: Session, project_id: int, series: set[int]) -> dict[int, int | None]:
    query = select(ScoreSeries.id, ScoreSeries.n_samples).where(
        ScoreSeries.project_id == project_id, ScoreSeries.id.in_(sorted(series))
    )
    return {row.id: row.n_samples for row in session.execute(query)}


def combine(
    columns: Sequence[Column],
    found: Mapping[Series, Scores],
    members: Sequence[Sequence[Series]],
    sizes: Mapping[int, int | None],
) -> tuple[Integers, Floats, Floats, bool]:
    """(ids, values, errors) of the mean over the members, each the mean over its parts, of who has them all.

    Also whether any standard error in it is assumed.
    """
    chosen = [key for member in members for key in member]
    if not chosen:
        return np.empty(0, np.int64), NOTHING, NOTHING, False
    everywhere = reduce(_in_both, [found[key].ids for key in chosen])
    assumed, means = False, []
    for member in members:
        parts = []
        for key in member:
            scores, column = found[key], columns[key[0]]
            if len(scores) > len(everywhere):
                scores = scores.where(np.searchsorted(scores.ids, everywhere))
            value, published = scores.values, scores.errors
            error, is_assumed = standard_errors(value, published, sizes.get(key[1]), column.benchmark, column.metric)
            assumed = assumed or is_assumed
            parts.append(orient_all(value, error, column.benchmark, column.metric))
        means.append(_mean(parts))
    values, errors = _mean(means)
    return everywhere, values, errors, assumed


def _in_both(ids: Integers, others: Integers) -> Integers:
    """Those that are in both, ascending; nearly always they are the same, which needs no sorting."""
    return ids if np.array_equal(ids, others) else np.intersect1d(ids, others, assume_unique=True)


def _mean(figures: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Of independent figures; without an error where one of them has none."""
    values = np.sum([value for value, _ in figures], axis=0) / len(figures)
    return values, np.sqrt(np.sum([error**2 for _, error in figures], axis=0)) / len(figures)


def on_scale(column: Column, scores: Scores) -> Scores:
    """The scores that can be of the benchmark's scale; one that cannot is not rescaled by guess."""
    inside = ~off_scale(scores.values, column.benchmark)
    return scores if inside.all() else scores.where(inside)
