"""`cairn compare`: what changed between two checkpoints."""

from typing import Any

import click

from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.types import Comparison, ScoreChange

# What needs a decision first.
ORDER = ("regressed", "suspected", "improved", "inconclusive", "unchanged", "not_comparable")


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--all", "show_all", is_flag=True, help="Every benchmark, also those without a change.")
@json_option
def compare(baseline: str, candidate: str, show_all: bool, as_json: bool) -> None:
    """Which scores really changed from one checkpoint to another, and what else did.

    BASELINE and CANDIDATE are checkpoints: an id, project/run@step or project/run@attempt.step.
    """
    with Client() as client:
        answer = client.compare(find_checkpoint_id(client, baseline), find_checkpoint_id(client, candidate))
    if as_json:
        print_json(answer.raw)
        return
    _print_scores(answer, show_all)
    _print_changes(answer)


def _print_scores(answer: Comparison, show_all: bool) -> None:
    counts = {verdict: sum(each.verdict == verdict for each in answer.scores) for verdict in ORDER}
    say(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "No scores to compare.")
    quiet = () if show_all else ("unchanged", "not_comparable")
    shown = [each for each in answer.scores if each.verdict not in quiet]
    shown.sort(key=lambda each: (ORDER.index(each.verdict) if each.verdict in ORDER else -1, each.benchmark))
    if shown:
        columns = ("benchmark", "metric", "baseline", "candidate", "delta", "stderr", "q", "verdict", "why")
        print_rows(columns, [_score_row(each) for each in shown])
    if len(shown) < len(answer.scores):
        say(f"{len(answer.scores) - len(shown)} more are unchanged or not comparable; --all shows them.")


def _score_row(each: ScoreChange) -> tuple[Any, ...]:
    return (
        each.benchmark,
        each.metric,
        each.baseline,
        each.candidate,
        each.delta,
        each.stderr,
        each.q_value,
        each.verdict,
        each.why,
    )


def _print_changes(answer: Comparison) -> None:
    for each in answer.capabilities:
        delta = "" if each.delta is None else f" by {each.delta:+.3g}"
        say(f"Capability {each.capability}: {each.verdict}{delta}")
    changes = (*answer.config_changes, *answer.environment_changes)
    if changes:
        rows = [(each.path, each.change, each.class_, each.old, each.new) for each in changes]
        print_rows(("setting", "change", "class", "old", "new"), rows)
    for name, answered in (("Data", answer.data_changes), ("Code", answer.code_changes)):
        facts = {key: value for key, value in answered.items() if value not in (None, [], {})}
        if facts:
            say(f"{name}: " + ", ".join(f"{key} {_plain(value)}" for key, value in facts.items()))
    for suspect in answer.suspects:
        share = "" if suspect.share is None else f", {suspect.share * 100:.0f} % of the suspicion"
        say(f"Suspect ({suspect.strength}{share}): {_plain(list(suspect.changes))}")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_plain, value[:8])) + (f" and {len(value) - 8} more" if len(value) > 8 else "")
    if isinstance(value, dict):
        return " ".join(f"{name}={_plain(each)}" for name, each in value.items())
    return str(value)
