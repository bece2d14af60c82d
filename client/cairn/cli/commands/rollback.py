"""`cairn rollback`: which checkpoint to go back to."""

from typing import Any

import click

from cairn.cli.output import checkpoint_cells, counted, json_option, print_json, print_rows, say
from cairn.cli.quantities import DURATION
from cairn.cli.targets import find_run
from cairn.client import Client
from cairn.numbers import number_from_wire
from cairn.types import Candidate, RollbackAnswer, Served

SHOWN = 5  # of what one filter left out
# What filters are called here, where their name is no word.
FILTERS = {"alias_target": "served now", "p_bad": "may be bad", "size": "size unknown", "rto": "restore time"}
# What loosens a filter here, where the service's words name no option.
OPTIONS = {
    "time": "a later --before, an earlier --after",
    "step": "a higher --at-or-before-step",
    "pieces": "--mode production",
    "unscored": "no --watch",
    "p_bad": "no --watch",
    "spike": "--watch NAME",
    "size": "no --rto",
    "rto": "a longer --rto",
}
# The capabilities of the service's benchmark table; any other word is a benchmark.
CAPABILITIES = frozenset(
    {"math", "code", "knowledge", "reasoning", "reading", "instruction", "chat", "safety"}
    | {"multilingual", "chinese", "longcontext", "agent", "lm"}
)


@click.command()
@click.option("--run", "run_", metavar="PROJECT/RUN", help="The run that broke.")
@click.option("--alias", metavar="PROJECT/ALIAS", help="The alias that points at something bad.")
@click.option("--watch", metavar="NAME", help="What got worse: a capability (math) or a benchmark (gsm8k).")
@click.option(
    "--mode",
    type=click.Choice(["training", "production"]),
    help="Least work lost, or best that is safe. Default: training for a run, production for an alias.",
)
@click.option("--after", help="Only checkpoints saved at or after this time, such as 2026-11-01T12:00:00Z.")
@click.option("--before", help="Only checkpoints saved before this time.")
@click.option("--at-or-before-step", type=click.IntRange(0), help="Only checkpoints up to this step.")
@click.option("--rto", "rto_seconds", type=DURATION, help="Only copies that are restored within, e.g. 10m.")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@json_option
def rollback(
    run_: str | None,
    alias: str | None,
    watch: str | None,
    mode: str | None,
    after: str | None,
    before: str | None,
    at_or_before_step: int | None,
    rto_seconds: float | None,
    limit: int,
    as_json: bool,
) -> int:
    """Show checkpoints to go back to, best first, and why the others are not among them.

    Nothing is changed. Exit code 0 means that there is a checkpoint to go back to, also where no fall is established
    and nothing speaks for it; exit code 1, that none passes every filter.
    """
    if (run_ is None) == (alias is None):
        raise click.UsageError("Name either --run PROJECT/RUN or --alias PROJECT/ALIAS.")
    with Client() as client:
        answer = client.rollback(
            find_run(client, run_) if run_ else None,
            alias=alias,
            mode=mode,
            watch=watched(watch) if watch else None,
            after=after,
            before=before,
            at_or_before_step=at_or_before_step,
            rto_seconds=rto_seconds,
            limit=limit,
        )
    if as_json:
        print_json(answer.raw)
    else:
        _print(answer)
    return 0 if answer.candidates else 1


def watched(text: str) -> dict[str, str]:
    """`math`, `gsm8k`, or with the kind in front: `capability:math`, `benchmark:math`."""
    kind, colon, name = text.partition(":")
    if colon and kind in ("capability", "benchmark"):
        return {kind: name}
    return {"capability" if text in CAPABILITIES else "benchmark": text}


def _print(answer: RollbackAnswer) -> None:
    say(answer.sentence or f"{counted(len(answer.candidates), 'checkpoint')} left to go back to.")
    if answer.fallen:
        say(f"Here that is: --watch {answer.fallen[0].capability}.")
    elif answer.candidates and answer.onset is None and answer.spike is None:
        say("Here that is: --watch NAME, a capability (math) or a benchmark (gsm8k).")
    if answer.onset is not None and answer.onset.sentence not in answer.sentence:
        say(f"Watching {answer.onset.watch}: {answer.onset.sentence}")
    if answer.onset is not None and answer.onset.why and answer.onset.why.lower() not in answer.sentence.lower():
        say(f"Not counted: {answer.onset.why}")
    if answer.spike is not None and answer.spike.sentence not in answer.sentence:
        say(answer.spike.sentence)
    if answer.last_known_good is not None:
        say(f"Last known good: {answer.last_known_good}")
    if answer.candidates:
        columns = ("rank", "checkpoint", "id", "restore", "copy", "why")
        print_rows(columns, [_candidate_row(each) for each in answer.candidates])
    if answer.served is not None:
        told = "" if answer.served.sentence in answer.sentence else f" {answer.served.sentence}."
        say(f"Served now: {answer.served.checkpoint} ({_terms(answer.served)}).{told}")
    counts = ", ".join(f"{FILTERS.get(name, name)} {count}" for name, count in answer.excluded_counts.items())
    if answer.excluded:
        say(f"Left out ({counts}):" if counts else "Left out:")
    for name in dict.fromkeys(each.filter for each in answer.excluded):
        alike = [each for each in answer.excluded if each.filter == name]
        for each in alike[:SHOWN]:
            say(f"  {each.checkpoint}: {FILTERS.get(name, name)}: {each.reason}")
        count = answer.excluded_counts.get(name, len(alike))
        if count > SHOWN:
            say(f"  and {count - SHOWN} more ({FILTERS.get(name, name)}); --json tells of them.")
    options = [option for name, words in answer.loosen.items() if (option := _option(name, str(words)))]
    if not answer.candidates and options:
        say(f"Here that is: {' with '.join(options)}.")
    for assumption in answer.assumptions:
        say(f"Assumed: {assumption}")


def _option(name: str, words: str) -> str:
    """The option that loosens a filter, where the service says that this helps."""
    offered = {"pieces": "production mode", "unscored": "watch nothing"}.get(name, "")
    return OPTIONS.get(name, "") if offered in words else ""


def _terms(served: Served) -> str:
    """Its score and how likely it loads, as far as they are known."""
    score, error, chance = (
        number_from_wire(served.terms.get(name)) for name in ("composite", "composite_stderr", "p_ok")
    )
    spread = "" if error is None else f" ± {100 * error:.1f}"
    told = "no score that counts" if score is None else f"score {100 * score:.1f}{spread}"
    return told if chance is None else f"{told}, loads in {100 * chance:.0f} % of cases"


def _candidate_row(each: Candidate) -> tuple[Any, ...]:
    label, id_ = checkpoint_cells(each.checkpoint)
    minutes = number_from_wire(each.terms.get("restore_minutes"))
    restore = None if minutes is None else f"{minutes:.1f} min"
    copy = each.copy or {}
    return each.rank, label, id_, restore, copy.get("tier"), "; ".join(each.reasons)
