"""What `cairn find` says beside its table: how it understood, how near the nearest come, what to ask next."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.cli.output import counted, points, say
from cairn.types import Evidence, SearchAnswer
from cairn.types.search import ordinal

PROJECTS = 5  # left out, that are named
INCOMPLETE = 8  # checkpoints shown that lack a score
FAR = 0.95  # the percentile that 'best' and 'very' ask for


def say_how_understood(answer: SearchAnswer, asked: str | None) -> None:
    """All that there is to say of an answer; `asked` are the words of the question."""
    said = answer.interpretation
    parts = [
        *map(str, said.conditions),
        *([f"the {said.order.replace('_', ' ')} first"] if said.order != "match" else []),
        *([f"{said.at_most} at most"] if said.at_most is not None else []),
    ]
    size = answer.population.get("size")
    ranked = f" Ranked among {counted(size, 'checkpoint')}." if size is not None else ""
    say(f"Understood: {', '.join(parts) or 'nothing'}.{ranked}")
    if said.unparsed:
        say(f"Not understood: {', '.join(said.unparsed)}.")
    say_read_as(said.resolved or {}, said.left_out)
    for warning in answer.population.get("warnings") or ():
        say(str(warning))
    if not answer.results:
        say("Nothing could be judged. A checkpoint without scores for this is never counted as weak.")
    elif not answer.strict:
        say(_nearest(answer))
    if asked is not None and not answer.strict:
        _say_next(said.left_out, asked, "cairn find", of_words=True)
    _say_incomplete(answer)


def _nearest(answer: SearchAnswer) -> str:
    """How near the first comes; of 'the worst at math' which that is, for nobody need be at the 5th percentile."""
    first = answer.results[0]
    unmet = [each for each in first.evidence if each.met is False]
    if len(answer.interpretation.conditions) == len(unmet) == 1 and _is_far(unmet[0]):
        asked = unmet[0].condition
        return (
            f"The {asked.relation}est at {asked.capability} comes first, {_stands(unmet[0])}; none is at the "
            f"{ordinal(asked.threshold)} or {asked.side}."
        )
    if not unmet and first.evidence and answer.interpretation.at_most is not None:
        met = sum(all(each.met is not False for each in result.evidence) for result in answer.results)
        return (
            f"{met} of these {len(answer.results)} {'meets' if met == 1 else 'meet'} every condition; others come near."
        )
    who = "Nothing that was asked" if answer.interpretation.left_out else "Nothing"
    near = ", ".join(f"{subject_of(each)} {_stands(each)}" for each in unmet)
    return f"{who} meets every condition; these come nearest{f', the first with {near}' if near else ''}."


def _is_far(evidence: Evidence) -> bool:
    """Whether a percentile was asked for that few have, and one is known."""
    asked = evidence.condition
    known = asked.capability is not None and evidence.percentile is not None and evidence.basis != "absolute"
    number = asked.threshold if isinstance(asked.threshold, int | float) else 0.5
    return known and asked.relation in ("strong", "weak") and not 1 - FAR + 1e-9 < number < FAR


def _stands(evidence: Evidence) -> str:
    if evidence.condition.relation in ("strong", "weak") and evidence.capability is not None:
        if evidence.basis == "absolute" and evidence.composite is not None:
            return f"at a normalised score of {evidence.composite:.3g}"
        if evidence.percentile is not None:
            return f"at the {ordinal(evidence.percentile)} percentile"
    values = [each.value for each in evidence.benchmarks if each.value is not None]
    return f"at {values[0]:.6g}" if values else "not evaluated"


def _say_incomplete(answer: SearchAnswer) -> None:
    """Those that were not evaluated on a part of the question, each with what is known of it. They are no results."""
    found = answer.incomplete
    if not found:
        return
    one = len(found) == 1
    say(
        f"{counted(len(found), 'checkpoint')} {'meets' if one else 'meet'} all that could be checked and "
        f"{'was' if one else 'were'} never evaluated on the rest, which is unknown and not weak:"
    )
    for result in found[:INCOMPLETE]:
        known = ", ".join(f"{subject_of(each)} {evidence_cell(each) or 'not evaluated'}" for each in result.evidence)
        say(f"  {result.checkpoint}  {known}  {result.checkpoint.id}")
    if len(found) > INCOMPLETE:
        say(f"  and {len(found) - INCOMPLETE} more: --json shows them.")


def subject_of(evidence: Evidence) -> str:
    """What a piece of evidence speaks of: a capability, a benchmark or a field."""
    asked = evidence.condition
    return asked.capability or asked.benchmark or asked.field_ or evidence.capability or "?"


def evidence_cell(evidence: Evidence) -> str:
    """A percentile where there is a population, else the composite; for a benchmark's own value its score."""
    scores = [each.value for each in evidence.benchmarks if each.value is not None]
    if evidence.condition.relation not in ("strong", "weak", "like", ""):
        return f"{scores[0]:.6g}" if scores else ""
    partly = evidence.coverage is not None and evidence.coverage < 1 and evidence.capability is not None
    measured = f" ({points(evidence.coverage)} measured)" if partly else ""
    if evidence.percentile is not None and (evidence.basis != "absolute" or evidence.composite is None):
        return points(evidence.percentile) + measured
    if evidence.composite is not None:
        return f"{evidence.composite:.3f}" + measured
    return "not evaluated"


def say_read_as(read_as: Mapping[str, Any], left_out: Mapping[str, Any]) -> None:
    """A benchmark without its metric means one metric for all: a person has to see which, and whom it leaves out."""
    for name, meant in read_as.items():
        if meant is None:
            say(f"{name}: no such score is recorded in the projects that were asked.")
        elif (short := _short(meant)) != name:
            bare = ", recorded without a metric" if short.endswith(".none") else ""
            say(f"{name} is read as {short}{bare}; name another metric to ask for that one.")
        groups = left_out.get(name) or ()
        if groups:
            say(f"  Left out: {'; '.join(_projects_with(each) for each in groups)}.")


def _projects_with(group: Mapping[str, Any]) -> str:
    """'inf and llm (which have gsm8k.acc only)'."""
    names = [*map(str, group["projects"])]
    more = f" and {len(names) - PROJECTS} more" if len(names) > PROJECTS else ""
    have = "has" if len(names) == 1 else "have"
    return f"{', '.join(names[:PROJECTS])}{more}, which {have} {' and '.join(map(_short, _scores(group)))} only"


def _scores(group: Mapping[str, Any]) -> Sequence[str]:
    return [*map(str, group.get("scores") or [group["score"]])]


def say_next_filter(left_out: Mapping[str, Any], filter_: str) -> None:
    """The filter that asks those whom this one left out."""
    _say_next(left_out, filter_, "cairn find --filter", of_words=False)


def _say_next(left_out: Mapping[str, Any], asked: str, command: str, *, of_words: bool) -> None:
    for name, groups in left_out.items():
        holders: Counter[str] = Counter()
        for group in groups:
            holders.update({score: len(group["projects"]) for score in _scores(group) if score.startswith("scores.")})
        if not holders:
            continue
        other, named = _short(holders.most_common(1)[0][0]), name
        if of_words:
            other, named = other.removeprefix("scores."), name.removeprefix("scores.")
        pattern = rf"(?<![\w.`-]){re.escape(named)}(?![\w`-]|\.\w)"
        text, times = re.subn(pattern, other.replace("\\", r"\\"), asked)
        if times:
            say(f"To ask them: {command} {shlex.quote(text)}")


def _short(score: Any) -> str:
    """The name as people write it: without an empty filter. A score that was recorded under a bare name ends in
    .none."""
    return str(score).removesuffix(".none")
