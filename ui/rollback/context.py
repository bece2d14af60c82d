"""The page of a rollback from its answer: the sentence, what was left out and why, and the ways on."""

from collections.abc import Mapping

from registry.evals.project_table import ProjectTable
from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.recovery.answers import RollbackAnswer
from registry.recovery.eligible import IN_WORDS, LOOSEN
from registry.wording import listed
from ui import filters
from ui.benchmark_counts import counted
from ui.contexts import Answer, CheckpointRef, Fact, Link
from ui.contexts.rollback import ExcludedGroup, RollbackContext
from ui.links import address
from ui.refs import ref_of
from ui.rollback.candidates import candidate_row, common_reasons, served_row, terms_of, where_to_load
from ui.rollback.onset import new_attempt, onset_facts, plot_of, spike_facts, watched_rows
from ui.words import grouped_steps, long_spans

NAMED_UP_TO = 5  # benchmarks of a score; of more, their number
# What to do about the filter that leaves out most, in the words of the page's form; the others as the domain says.
LOOSER = {
    "time": "take other days in ‘Saved from’ and ‘Saved before’",
    "step": "raise ‘At or before step’",
    "pieces": "record the pieces of the checkpoints, or ask for production, which needs weights only",
    "condition": "loosen what is asked ‘Also, in words’",
    "unscored": "evaluate the newest checkpoints as the others were, or watch nothing",
    "p_bad": "evaluate the newest of them again, or watch nothing",
    "size": "record the sizes of the copies, or leave ‘Restore within’ empty",
    "rto": "allow more time in ‘Restore within’",
}


def rollback_context(
    answer: RollbackAnswer,
    briefs: Mapping[int, Brief],
    *,
    fields: dict[str, str],
    days: dict[str, str],
    errors: dict[str, str],
    subject: Link,
    watch_choices: tuple[str, ...],
    more: Link | None,
    table: ProjectTable,
    alias_choices: tuple[Link, ...],
    run_choices: tuple[Link, ...],
) -> RollbackContext:
    """Everything that the page shows. `briefs` holds every checkpoint that the answer names.

    `days` are the fields that a form shows as a day, '' where they are none; `table`: the project's benchmark table.
    """
    used = terms_of(answer)
    good = answer.last_known_good
    newest = max((brief for brief in briefs.values()), key=lambda brief: (brief.attempt, brief.step), default=None)
    common = common_reasons(answer.candidates)
    return RollbackContext(
        answer=_answer(answer),
        run_names=filters.apart((brief.run_name for brief in briefs.values()), 44),
        run_choices=run_choices,
        alias_choices=alias_choices,
        subject=subject,
        fields=fields | days,
        watch_choices=watch_choices,
        more=more,
        onset=onset_facts(answer.onset),
        plot=plot_of(answer, briefs, {name: text for name, text in fields.items() if name not in errors}),
        watched=watched_rows(answer, briefs),
        last_known_good=ref_of(briefs[good.id]) if good else None,
        good_is_provisional=not answer.speaks_for_going_back,
        candidates=tuple(candidate_row(each, used, briefs, newest, common) for each in answer.candidates),
        common_reasons=tuple(long_spans(grouped_steps(text)) for text in common),
        term_names=tuple(name for _, name, _ in used),
        score_of=_score_of(answer, table),
        served=served_row(answer, used, briefs),
        excluded=_excluded(answer, briefs),
        excluded_counts=tuple(
            Fact(filter_in_words(name), filters.grouped(n)) for name, n in answer.excluded_counts.items()
        ),
        assumptions=answer.assumptions,
        command=where_to_load(answer),
        alias_to_move=fields["alias"] or None,
        spike=spike_facts(answer.spike),
        spike_rewind=ref_of(briefs[answer.spike.rewind_to.id]) if answer.spike and answer.spike.rewind_to else None,
        spike_command=new_attempt(answer.spike),
        watch_form=_watch_form(fields),
        errors=errors,
        actions=(*_fall_links(answer, fields), *_actions(answer, fields)),
    )


def _score_of(answer: RollbackAnswer, table: ProjectTable) -> Fact | None:
    names = answer.judged_by
    if not names:
        return None
    few = names[0] if len(names) == 1 else f"the mean of {listed(names)}"
    what = few if len(names) <= NAMED_UP_TO else f"the mean over {counted(names, table)}"
    parts = ", the parts of one counted as one" if what.endswith("parts)") else ""
    told = f"A score is {what}{parts}, in points: 0 is guessing, 100 perfect. ‘Surely’ means with a confidence of 95%."
    return Fact("score", told, ", ".join(names))


def _excluded(answer: RollbackAnswer, briefs: Mapping[int, Brief]) -> tuple[ExcludedGroup, ...]:
    """Those that were left out for the same reason together, so that it is said once."""
    groups: dict[tuple[str, str], list[CheckpointRef]] = {}
    for each in answer.excluded:
        ref = ref_of(briefs[each.checkpoint.id], suspect=each.filter == "suspect")
        groups.setdefault((each.filter, each.reason), []).append(ref)
    return tuple(
        ExcludedGroup(filter_in_words(name), grouped_steps(reason), tuple(refs))
        for (name, reason), refs in groups.items()
    )


def _fall_links(answer: RollbackAnswer, fields: Mapping[str, str]) -> tuple[Link, ...]:
    """What fell unasked, as the question about it; of a fall between two checkpoints, the search for where."""
    asked = {name: text for name, text in fields.items() if text}
    names = [each.watch.words for each in answer.fallen]
    links = [Link(f"Go back to before {name} fell", address("/rollback", **asked | {"watch": name})) for name in names]
    watched = answer.onset
    onset = watched.onset if watched is not None else None
    if watched is None or onset is None or onset.found_by == "scores":
        return tuple(links)
    if onset.bisect_id is not None:
        return Link("The search that found it", f"/bisects/{to_text(onset.bisect_id)}"), *links
    ends = {point.checkpoint.step: to_text(point.checkpoint.id) for point in watched.points}
    pair = [ends[step] for step in (onset.after_step, onset.by_step) if step in ends]
    if len(pair) < 2:
        return tuple(links)
    return Link(
        "Compare the two, and search where it fell", address("/compare", baseline=pair[0], candidate=pair[1])
    ), *links


def _actions(answer: RollbackAnswer, fields: Mapping[str, str]) -> tuple[Link, ...]:
    """The evidence around the question: what interrupted the run, and where the first candidate can be loaded."""
    links = []
    if answer.candidates:
        first = to_text(answer.candidates[0].checkpoint.id)
        links.append(Link("Where and how to restore it", f"/checkpoints/{first}#restore"))
        links.append(Link("Where it comes from", f"/checkpoints/{first}/provenance"))
    if fields["run"]:
        links.append(Link("Interruptions of this run", address("/incidents", run=fields["run"])))
        links.append(Link("Findings on this run", address("/findings", run=fields["run"])))
    return (*links, Link("Keep this answer", "#keep"))


def _answer(answer: RollbackAnswer) -> Answer:
    """Where to go back to comes first; what fell or spiked, and since when, is its detail."""
    if not answer.candidates:
        return Answer(_sentence(answer), "warn")
    before, _, behind = answer.sentence.partition(answer.headline)
    detail = " ".join(filter(None, (before.strip(), behind.strip())))
    tone = "good" if answer.speaks_for_going_back else "warn" if answer.fallen else "unknown"
    return Answer(grouped_steps(answer.headline), tone, grouped_steps(detail))


def _sentence(answer: RollbackAnswer) -> str:
    """The domain's sentence; where nothing is left, with the page's own words for the filter to loosen."""
    said = grouped_steps(answer.sentence)
    if answer.candidates or not answer.excluded_counts:
        return said
    ways = [_looser(name, words) for name, words in answer.loosen.items()]
    before, how, behind = said.partition("To loosen that")
    return f"{before}{how}{behind.partition(': ')[0]}: {'; '.join(ways)}." if how else said


def _looser(name: str, words: str) -> str:
    """As the domain says it, in the words of the form where it has some for this."""
    return LOOSER.get(name, words) if words == LOOSEN[name] else words


def filter_in_words(name: str) -> str:
    """The hard filter of a rollback, as a reader of the page would say it."""
    return IN_WORDS.get(name, filters.words(name))


def _watch_form(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields of a standing watch of what the question is about."""
    subject = {"alias": fields["alias"]} if fields["alias"] else {"run": fields["run"]}
    return subject | {"watch": fields["watch"] or ("" if fields["alias"] else "the loss")}
