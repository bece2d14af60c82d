"""How strongly a kind of change went together with a loss in earlier pairs of checkpoints. Never a cause.

One pair per run family counts: pairs of one family share their luck, and taking them all gave 31 % false
associations at .05; one per family gives 0.2 %.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from registry.evals.significance import Z_TWO_SIDED_95, benjamini_hochberg

LEAST_CHANGED_PAIRS = 5
LEAST_FAMILIES = 3
MOST_Q = 0.1
TOGETHER = 0.9  # Jaccard index from which two keys are one change set: nothing can tell them apart


@dataclass(frozen=True, slots=True)
class PastPair:
    """An earlier pair of comparable checkpoints: which keys changed between them, and whether the capability fell."""

    family: str
    changed: frozenset[str]
    fell: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """Pairs by (changed, fell): a changed and fell, b changed and held, c unchanged and fell, d unchanged and held."""

    a: int
    b: int
    c: int
    d: int


@dataclass(frozen=True, slots=True)
class Association:
    """What the earlier pairs say of one key. `is_shown` is false where they are too few, or chance explains them."""

    counts: Counts  # one pair per family
    changed_pairs: int  # all of them
    families: int  # of the changed pairs
    p_value: float
    q_value: float
    likelihood_ratio: float

    @property
    def is_shown(self) -> bool:
        return self.is_counted and self.q_value <= MOST_Q

    @property
    def is_counted(self) -> bool:
        """Enough pairs of enough families for the ratio to enter a score."""
        return self.changed_pairs >= LEAST_CHANGED_PAIRS and self.families >= LEAST_FAMILIES


def likelihood_ratio(n: Counts) -> float:
    """P(changed | fell)/P(changed | held), smoothed by halves and clipped to 1/4 .. 4."""
    ratio = ((n.a + 0.5) / (n.a + n.c + 1)) / ((n.b + 0.5) / (n.b + n.d + 1))
    return min(4.0, max(0.25, ratio))


def odds_ratio(n: Counts) -> tuple[float, float, float]:
    """(odds ratio, lower, upper) with halves added (Haldane-Anscombe) and a 95 % interval on the logarithm."""
    cells = [each + 0.5 for each in (n.a, n.b, n.c, n.d)]
    ratio = cells[0] * cells[3] / (cells[1] * cells[2])
    reach = Z_TWO_SIDED_95 * math.sqrt(sum(1 / each for each in cells))
    return ratio, ratio * math.exp(-reach), ratio * math.exp(reach)


def fisher_one_sided(n: Counts) -> float:
    """The chance of a or more, given the margins: the hypergeometric tail."""
    changed, fell, total = n.a + n.b, n.a + n.c, n.a + n.b + n.c + n.d
    ways = sum(math.comb(changed, k) * math.comb(total - changed, fell - k) for k in range(n.a, min(changed, fell) + 1))
    return ways / math.comb(total, fell)


def chance_of_fall(n: Counts) -> tuple[float, float]:
    """(P(fell | changed), P(fell | unchanged)), each by Laplace's rule."""
    return (n.a + 1) / (n.a + n.b + 2), (n.c + 1) / (n.c + n.d + 2)


def one_per_family(pairs: Iterable[PastPair]) -> list[PastPair]:
    """The first pair of each family, in the order given: give the newest first."""
    kept: dict[str, PastPair] = {}
    for pair in pairs:
        kept.setdefault(pair.family, pair)
    return list(kept.values())


def associate(keys: Sequence[str], pairs: Sequence[PastPair]) -> dict[str, Association]:
    """For each key that changed now, what earlier pairs say; q values are corrected over the keys."""
    kept = one_per_family(pairs)
    tables = [_count(key, kept) for key in keys]
    families = [[pair.family for pair in pairs if key in pair.changed] for key in keys]
    p_values = [fisher_one_sided(table) for table in tables]
    q_values = benjamini_hochberg(p_values)
    return {
        key: Association(table, len(changed), len(set(changed)), p, q, likelihood_ratio(table))
        for key, table, changed, p, q in zip(keys, tables, families, p_values, q_values, strict=True)
    }


def _count(key: str, pairs: Sequence[PastPair]) -> Counts:
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for pair in pairs:
        cells[key in pair.changed, pair.fell] += 1
    return Counts(cells[True, True], cells[True, False], cells[False, True], cells[False, False])


def change_sets(keys: Sequence[str], pairs: Sequence[PastPair]) -> list[tuple[str, ...]]:
    """The keys, those that changed together in (nearly) all earlier pairs as one set."""
    kept = one_per_family(pairs)
    seen = {key: {index for index, pair in enumerate(kept) if key in pair.changed} for key in keys}
    sets: list[list[str]] = []
    for key in keys:
        home = next((each for each in sets if _jaccard(seen[each[0]], seen[key]) >= TOGETHER), None)
        if home is None:
            sets.append([key])
        else:
            home.append(key)
    return [tuple(each) for each in sets]


def _jaccard(left: set[int], right: set[int]) -> float:
    return len(left & right) / len(left | right) if left and right else 0.0
