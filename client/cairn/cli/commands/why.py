"""`cairn why`: why one checkpoint is worse than another, and after which one it became so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cairn.bisecting import Template, drive
from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.types import Bisect, Comparison, ScoreChange, Suspect

FELL = ("regressed", "suspected")
NOT_SURE = 1
NO_RESULT = 1


@click.command()
@click.argument("baseline", metavar="[BASELINE", required=False)
@click.argument("candidate", metavar="CANDIDATE]", required=False)
@click.option("--good", metavar="CHECKPOINT", help="The last one that is good; the same as BASELINE.")
@click.option("--bad", metavar="CHECKPOINT", help="One that came from it and is bad; the same as CANDIDATE.")
@click.option("--bisect", "search", is_flag=True, help="Search the checkpoints between: after which one did it fall?")
@click.option("--benchmark", metavar="NAME", help="What fell, to search for (default: what fell most surely).")
@click.option("--metric", metavar="NAME", help="Of the benchmark.")
@click.option("--capability", metavar="NAME", help="Search for the fall of a capability instead.")
@click.option(
    "--eval",
    "command",
    metavar="COMMAND",
    help="Evaluates a checkpoint, run without a shell; {path}, {checkpoint}, {items} and {output} are filled in.",
)
@click.option("--most", type=click.IntRange(min=1), default=100, show_default=True, help="Evaluations at most.")
@click.option("--keep-output", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep result files below it.")
@json_option
def why(
    baseline: str | None,
    candidate: str | None,
    good: str | None,
    bad: str | None,
    search: bool,
    benchmark: str | None,
    metric: str | None,
    capability: str | None,
    command: str | None,
    most: int,
    keep_output: Path | None,
    as_json: bool,
) -> int:
    """Why is CANDIDATE worse than BASELINE? In words: what fell, and what changed that may explain it.

    With --bisect: after which checkpoint did it fall? Says which one to evaluate next; with --eval it evaluates, reads
    the result files, and goes on until the answer is sure. Stop it at any moment: the same command goes on from there.

    \b
    cairn why llm/7b@40000 llm/7b@48000
    cairn why --good llm/7b@40000 --bad llm/7b@48000 --bisect --benchmark gsm8k \\
        --eval 'lm_eval --model hf --model_args pretrained={path} --tasks gsm8k --limit {items} --output_path {output}'
    """
    first, last = good or baseline, bad or candidate
    if first is None or last is None or (good and baseline) or (bad and candidate):
        raise click.UsageError("Name two checkpoints: BASELINE CANDIDATE, or --good and --bad.")
    if command is not None and not search:
        raise click.UsageError("--eval drives a search; add --bisect.")
    if command is not None and capability is not None:
        raise click.UsageError("--eval measures one benchmark; name it with --benchmark.")
    template = Template(command) if command is not None else None
    with Client() as client:
        pair = find_checkpoint_id(client, first), find_checkpoint_id(client, last)
        if not search:
            return _explain(client.compare(*pair), as_json)
        named: tuple[str | None, str | None, str | None] = (benchmark, metric, None) if benchmark else (None,) * 3
        if benchmark is None and capability is None:
            named = _surest(client.compare(*pair))
        bisect = client.start_bisect(*pair, benchmark=named[0], metric=named[1], filter=named[2], capability=capability)
        stopped = ""
        if template is not None:
            finished = drive(client, bisect, template, say=say, most=most, keep_below=keep_output)
            bisect, stopped = finished.bisect, finished.stopped
    return _say_bisect(bisect, stopped, as_json)


def _surest(answer: Comparison) -> tuple[str, str | None, str | None]:
    """The benchmark that fell most surely; the first of the answer, which is ordered so."""
    fallen = [each for each in answer.scores if each.verdict in FELL]
    if not fallen:
        raise click.UsageError("No benchmark fell between the two; name one with --benchmark.")
    first = fallen[0]
    say(f"Searching for the fall of {_name(first)}: {first.why}.")
    return first.benchmark, first.metric or None, first.filter or None


def _name(row: ScoreChange) -> str:
    return ".".join(filter(None, (row.benchmark, row.metric, row.filter)))


def _explain(answer: Comparison, as_json: bool) -> int:
    if as_json:
        print_json(answer.raw)
    else:
        for line in _told(answer):
            click.echo(line)
    return 0 if _compared(answer) else NO_RESULT


def _compared(answer: Comparison) -> bool:
    """Whether any score of one could be held against one of the other."""
    return any(each.verdict != "not_comparable" for each in answer.scores)


def _told(answer: Comparison) -> Iterator[str]:
    if lineage := answer.lineage_why:
        yield f"{lineage[:1].upper()}{lineage[1:]}."
    fallen = [each for each in answer.capabilities if each.verdict in FELL]
    single = [each for each in answer.scores if each.verdict in FELL]
    if not _compared(answer):
        yield _nothing_compared(answer)
        return
    if not fallen and not single:
        yield "Nothing fell beyond its uncertainty."
        rest = [each for each in answer.scores if each.verdict in ("inconclusive", "not_comparable")]
        if rest:
            yield f"Not decided: {', '.join(f'{_name(each)} ({each.why})' for each in rest[:3])}."
        return
    for each in fallen:
        yield f"{each.capability}: {each.verdict}, {each.why}."
    for row in single:
        yield f"  {_name(row)}: {row.verdict}, {row.why} [{row.method}]."
    if not answer.suspects:
        yield "No recorded change explains it."
        return
    yield "What changed, the strongest suspect first (associations, not causes):"
    for place, suspect in enumerate(answer.suspects[:8], start=1):
        yield from _suspect(place, suspect)
    if len(answer.suspects) > 8:
        yield f"  and {len(answer.suspects) - 8} weaker; `cairn compare` shows all."
    yield "Only reverting one and training a short branch confirms it."


def _nothing_compared(answer: Comparison) -> str:
    if not answer.scores:
        return "Nothing can be said: no benchmark was measured on both."
    rows = ", ".join(f"{_name(each)} ({each.why})" for each in answer.scores[:3])
    return f"Nothing can be said: no score of one is comparable with one of the other: {rows}."


def _suspect(place: int, suspect: Suspect) -> Iterator[str]:
    tested = suspect.raw.get("tested")
    said = f"; {tested.get('verdict')} by {tested.get('created_by')}" if isinstance(tested, dict) else ""
    share = "" if suspect.share is None else f", {suspect.share * 100:.0f} % of the suspicion"
    yield f"{place}. {', '.join(suspect.changes)} ({suspect.strength}{share}{said})"
    for reason in suspect.reasons[:4]:
        yield f"     {reason}"


def _say_bisect(bisect: Bisect, stopped: str, as_json: bool) -> int:
    if as_json:
        print_json(bisect.raw)
        return 0
    say(f"{bisect.why[:1].upper()}{bisect.why[1:]}.")
    if stopped:
        say(f"Stopped: {stopped}.")
    rows: list[tuple[Any, ...]] = [
        (str(gap.after), str(gap.before), f"{gap.probability:.3f}")
        for gap in sorted(bisect.posterior, key=lambda each: -each.probability)[:5]
        if gap.probability >= 0.001
    ]
    print_rows(("good until", "bad from", "probability"), rows)
    if bisect.next is not None:
        say(
            f"Next: evaluate {bisect.next.checkpoint} (id {bisect.next.checkpoint.id}) on {bisect.next.items:,} items; "
            "its score counts as soon as it is recorded, or give a command with --eval."
        )
        return NOT_SURE if stopped else 0
    return 0
