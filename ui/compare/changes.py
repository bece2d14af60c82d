"""What else changed between the two: config, environment, data mix and code, in words and rows."""

from typing import Any

from registry.provenance.compare import ANOTHER_VERSION, CodeChanges, Comparison, DataChanges
from registry.provenance.config_diff import ConfigChange
from ui import filters
from ui.contexts import Fact
from ui.contexts.compare import ChangeRow, MixRow
from ui.refs import config_text

SHOWN_SOURCES = 40


def change_row(each: ConfigChange) -> ChangeRow:
    def shown(value: Any, missing: bool) -> str:
        return filters.MISSING if missing else filters.middle(config_text(value), 200)

    unknown = each.not_recorded_on
    return ChangeRow(
        each.path,
        each.change if unknown is None else f"not recorded on the {unknown}",
        each.kind,
        shown(each.old, each.change == "added"),
        shown(each.new, each.change == "removed"),
    )


def config_words_of(found: Comparison) -> str:
    late = f"{found.late_why[0].upper()}{found.late_why[1:]}. " if found.late_why else ""
    if found.config_why:
        return f"{late}Unknown: {found.config_why}."
    return late.strip() if found.config_changes else f"{late}No config value differs."


def environment_words_of(found: Comparison) -> str:
    if found.environment_why:
        return f"Unknown: {found.environment_why}."
    return "" if found.environment_changes else "No recorded value differs."


def mix_rows(data: DataChanges) -> tuple[MixRow, ...]:
    return tuple(
        MixRow(each.source, each.old_share, each.new_share, each.jensen_shannon_bits, each.old_tokens, each.new_tokens)
        for each in data.mix.sources[:SHOWN_SOURCES]
    )


def mix_words_of(data: DataChanges) -> str:
    same = data.baseline == data.candidate and data.baseline is not None
    names = f"Both used {data.baseline}. " if same else ""
    names = names or f"{data.baseline or 'Not recorded'} → {data.candidate or 'not recorded'}. "
    note = f" {data.note[0].upper()}{data.note[1:]}." if data.note else ""
    mix = data.mix
    if mix.total_variation is None or mix.jensen_shannon_bits is None:
        if mix.why.startswith(ANOTHER_VERSION):
            return f"{mix.why[0].upper()}{mix.why[1:]}.{note}"
        why = mix.why or "a mix is not recorded"
        return f"{names}How the mixes differ is unknown: {why}.{note}"
    left_out = len(mix.sources) - SHOWN_SOURCES
    more = f" The {SHOWN_SOURCES} sources that moved most are shown; {left_out} moved less." if left_out > 0 else ""
    moved = "tokens seen came from other sources" if data.by_lineage else "mix moved"
    past = (
        " What was seen before a side resumed from another checkpoint is counted as it was." if data.by_lineage else ""
    )
    return f"{names}{filters.percent(mix.total_variation, 1)} of the {moved}.{past}{note}{more}"


def mix_figures_of(data: DataChanges) -> tuple[Fact, ...]:
    """The measures of how far the two mixes lie apart, in words and by their names."""
    mix = data.mix
    if mix.total_variation is None or mix.jensen_shannon_bits is None:
        return ()
    return (
        Fact(
            "part that came from other sources",
            f"{filters.number(mix.total_variation, 3)} of 1 (total variation: half the sum of the differences)",
            filters.exact(mix.total_variation),
        ),
        Fact(
            "how well one sample's source tells the mixes apart",
            f"{filters.number(mix.jensen_shannon_bits, 3)} of 1 bit (Jensen-Shannon divergence: 0 where the mixes are "
            "the same, 1 where no source is in both)",
            filters.exact(mix.jensen_shannon_bits),
        ),
    )


def code_words_of(code: CodeChanges) -> str:
    old, new = (commit[:12] if commit else "no commit" for commit in code.commits)
    verdict = {"same": "The same", "known": f"{filters.plural(len(code.files), 'file')} changed", "unknown": "Unknown"}
    named = "" if code.commits == (None, None) else f" ({old} → {new})"
    return f"{verdict[code.status]}{named}: {code.why}." if code.why else f"{verdict[code.status]}{named}."
