"""How two mixes of training data differ: shares and tokens per source, and two distances between the mixes.

Total variation and the Jensen-Shannon divergence (bits) stay finite when a source was dropped; KL would not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """What is recorded of one source: its weight in the mix (any scale) and its tokens, None where unknown."""

    weight: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class SourceChange:
    """One source in both mixes. Shares sum to 1 over a mix; `jensen_shannon_bits` is its part of the divergence."""

    source: str
    old_share: float | None
    new_share: float | None
    old_tokens: float | None
    new_tokens: float | None
    jensen_shannon_bits: float | None


@dataclass(frozen=True, slots=True)
class MixChange:
    """Two mixes compared, sources with the largest part of the divergence first.

    `total_variation` and `jensen_shannon_bits` are None where one of the mixes is unknown, and `why` says which.
    """

    total_variation: float | None
    jensen_shannon_bits: float | None
    sources: tuple[SourceChange, ...]
    why: str = ""


def shares(mix: Mapping[str, Source]) -> dict[str, float] | None:
    """Each source's share of the mix: from weights where every source has one, else from tokens; else None."""
    for values in ({name: s.weight for name, s in mix.items()}, {name: s.tokens for name, s in mix.items()}):
        known = {name: value for name, value in values.items() if value is not None}
        total = math.fsum(known.values())
        if len(known) == len(mix) and total > 0:
            return {name: value / total for name, value in known.items()}
    return None


def tokens_seen(mix: Mapping[str, Source], total_tokens: float | None) -> dict[str, float | None]:
    """Tokens that training saw of each source: its share of the total where both are known, else what it holds."""
    known = shares(mix)
    if known is not None and total_tokens is not None:
        return {name: share * total_tokens for name, share in known.items()}
    return {name: source.tokens for name, source in mix.items()}


def jensen_shannon_part(p: float, q: float) -> float:
    """One source's part of the Jensen-Shannon divergence, in bits, for its shares p and q."""
    middle = (p + q) / 2
    return sum(0.5 * each * math.log2(each / middle) for each in (p, q) if each > 0)


def compare_mixes(
    old: Mapping[str, Source] | None,
    new: Mapping[str, Source] | None,
    old_total_tokens: float | None = None,
    new_total_tokens: float | None = None,
) -> MixChange:
    """Compare two mixes; None or an empty mapping is an unknown mix. Totals are the tokens training saw in all."""
    old, new = old or {}, new or {}
    p, q = shares(old), shares(new)
    old_tokens, new_tokens = tokens_seen(old, old_total_tokens), tokens_seen(new, new_total_tokens)
    known = p is not None and q is not None
    changes = [
        SourceChange(
            name,
            None if p is None else p.get(name, 0.0),
            None if q is None else q.get(name, 0.0),
            old_tokens.get(name, 0.0 if p is not None else None),
            new_tokens.get(name, 0.0 if q is not None else None),
            jensen_shannon_part(p.get(name, 0.0), q.get(name, 0.0)) if p is not None and q is not None else None,
        )
        for name in sorted(old.keys() | new.keys())
    ]
    changes.sort(key=lambda change: (-(change.jensen_shannon_bits or 0.0), change.source))
    if not known:
        return MixChange(None, None, tuple(changes), _unknown(p is None, q is None))
    return MixChange(
        math.fsum(abs((c.new_share or 0.0) - (c.old_share or 0.0)) for c in changes) / 2,
        math.fsum(c.jensen_shannon_bits or 0.0 for c in changes),
        tuple(changes),
    )


def _unknown(old: bool, new: bool) -> str:
    if old and new:
        return "neither side has a recorded mix"
    return f"the {'baseline' if old else 'candidate'} has no recorded mix"
