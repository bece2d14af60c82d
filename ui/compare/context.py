"""A comparison in words and rows: the answer first, then what proves it."""

from datetime import UTC, datetime

from registry.evals.project_table import ProjectTable
from registry.ids import to_text
from registry.provenance.compare import Comparison
from registry.provenance.suspects import Suspect
from ui import filters
from ui.compare.answer import compare_answer, speaks_of_a_fall
from ui.compare.changes import (
    change_row,
    code_words_of,
    config_words_of,
    environment_words_of,
    mix_figures_of,
    mix_rows,
    mix_words_of,
)
from ui.compare.scores import capability_row, leading, reach_of, score_row
from ui.contexts import CheckpointRef, Fact, Link
from ui.contexts.compare import ChangeRow, CommitRow, CompareContext, SuspectRow
from ui.links import address
from ui.words import grouped_steps

SHOWN_COMMITS = 20


def compare_context(
    found: Comparison,
    old: CheckpointRef,
    new: CheckpointRef,
    typed: tuple[str, str],
    table: ProjectTable,
    *,
    every: bool,
) -> CompareContext:
    """Everything that the page shows of a comparison.

    `typed`: the two sides as the URL names them; `table`: how the benchmarks of their projects read.
    """
    scores = found.scores.scores
    shown = scores if every else leading(scores)
    rows = tuple(score_row(each, table) for each in shown)
    capabilities = tuple(capability_row(each, table) for each in found.scores.capabilities)
    here = {"baseline": typed[0], "candidate": typed[1]}
    config = [change_row(each) for each in found.config_changes if each.kind != "inert"]
    return CompareContext(
        baseline=old,
        candidate=new,
        answer=compare_answer(found),
        capabilities=capabilities,
        scores=rows,
        show_all=_show_all(here, len(scores) - len(shown), every),
        reach=reach_of([*capabilities, *rows]),
        config_changes=tuple(config),
        config_words=config_words_of(found),
        inert_changes=len(found.config_changes) - len(config),
        mix=mix_rows(found.data_changes),
        mix_words=mix_words_of(found.data_changes),
        mix_figures=mix_figures_of(found.data_changes),
        code_words=code_words_of(found.code_changes),
        code_files=tuple(ChangeRow(each.path, each.change, each.kind, "", "") for each in found.code_changes.files),
        environment_changes=tuple(change_row(each) for each in found.environment_changes),
        environment_words=environment_words_of(found),
        lineage=grouped_steps(_sentence(found.lineage_why)),
        suspects=tuple(_suspect_row(each) for each in found.suspects) if speaks_of_a_fall(found.scores) else (),
        log=tuple(
            CommitRow(each.commit[:12], datetime.fromtimestamp(each.at, UTC), each.subject)
            for each in found.code_changes.log[:SHOWN_COMMITS]
        ),
        search=_search_for(found),
        only_baseline=len(found.scores.only_baseline),
        only_candidate=len(found.scores.only_candidate),
        actions=_actions(found, old, new),
        swap_href=address("/compare", baseline=typed[1], candidate=typed[0]),
        csv_href=address("/compare.csv", **here),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _actions(found: Comparison, old: CheckpointRef, new: CheckpointRef) -> tuple[Link, ...]:
    """What a reader of the comparison goes on to do."""
    links = [Link("After which checkpoint did it fall?", "#search")] if _search_for(found) else []
    return (
        *links,
        Link("Roll the candidate's run back", address("/rollback", run=new.run_id)),
        Link("Where the candidate comes from", f"/checkpoints/{new.id}/provenance"),
        Link("Where the baseline comes from", f"/checkpoints/{old.id}/provenance"),
        Link("Keep this answer", "#keep"),
    )


def _suspect_row(each: Suspect) -> SuspectRow:
    """In words; the figures behind them apart."""
    figures = [
        Fact("how likely it is at all", filters.number(each.prior, 2), "the prior, assumed before any evidence"),
        Fact("size of the change", f"{filters.number(each.magnitude, 2)} of 1"),
        Fact(
            "weight of earlier pairs",
            f"{filters.number(each.likelihood_ratio, 3)} times",
            "likelihood ratio: 1 where too few pairs had this change to say anything",
        ),
    ]
    past = each.association
    if past is not None:
        counts = past.counts
        figures += [
            Fact("fell with it", f"{counts.a} of {counts.a + counts.b}", "run families, one pair each"),
            Fact("fell without it", f"{counts.c} of {counts.c + counts.d}", "run families, one pair each"),
            Fact(
                "false alarms expected",
                filters.number(past.q_value, 2),
                "q: of all changes that stand out at least as much, the share that is chance; Fisher's exact test, "
                "corrected over the changes",
            ),
        ]
    tested = each.tested.verdict if each.tested is not None else ""
    return SuspectRow(each.changes, each.strength, each.share, each.reasons, tuple(figures), tested)


def _search_for(found: Comparison) -> dict[str, str] | None:
    """What a search for the checkpoint after which it fell would ask: the benchmark that fell most surely.

    None where nothing is said to have fallen.
    """
    if not speaks_of_a_fall(found.scores):
        return None
    first = next((each for each in found.scores.scores if each.verdict in ("regressed", "suspected")), None)
    if first is None or found.baseline.project != found.candidate.project:
        return None
    named = {"benchmark": first.benchmark, "metric": first.metric, "filter": first.filter}
    return {"good": to_text(found.baseline.id), "bad": to_text(found.candidate.id), **named}


def _show_all(here: dict[str, str], hidden: int, every: bool) -> Link | None:
    if every:
        return Link("Show only what moved", address("/compare", **here) + "#scores")
    return Link(f"Show the other {hidden}", address("/compare", **here, all="1") + "#scores") if hidden else None
