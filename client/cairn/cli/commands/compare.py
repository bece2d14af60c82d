"""`cairn compare`: what changed between two checkpoints."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.numbers import number_from_wire
from cairn.types import Comparison, ConfigChange, ScoreChange, Suspect

SOURCES = 6  # and files, shown on a line
FELL = ("regressed", "suspected")
OPEN, SHOWN_UNCLEAR = "inconclusive", 10
# What needs a decision first.
ORDER = ("regressed", "suspected", "improved", "inconclusive", "unchanged", "not_comparable")


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--all", "show_all", is_flag=True, help="Every benchmark, also those of which nothing is sure.")
@json_option
def compare(baseline: str, candidate: str, show_all: bool, as_json: bool) -> None:
    """Which scores really changed from one checkpoint to another, and what else did.

    The delta of a benchmark, and the figures in its why, are candidate - baseline on the benchmark's own scale: where
    lower is better (the why says so), above 0 is worse. A capability's are normalised, and below 0 is always worse.

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
    if not show_all:
        shown = [
            *(each for each in shown if each.verdict != OPEN),
            *_nearest([each for each in shown if each.verdict == OPEN]),
        ]
    if shown:
        columns = ("benchmark", "metric", "baseline", "candidate", "delta", "stderr", "q", "verdict", "why")
        print_rows(columns, [_score_row(each) for each in shown])
    if len(shown) < len(answer.scores):
        left = {each.verdict for each in answer.scores if each not in shown}
        words = [verdict.replace("_", " ") for verdict in ORDER if verdict in left]
        say(f"{len(answer.scores) - len(shown)} more are {' or '.join(words)}; --all shows them.")


def _nearest(unclear: Sequence[ScoreChange]) -> list[ScoreChange]:
    """The few that are nearest to a change: dozens of rows that decide nothing would hide what follows."""
    by_q = sorted(unclear, key=lambda each: (1.0 if each.q_value is None else each.q_value, each.benchmark))
    return by_q[:SHOWN_UNCLEAR]


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
    if lineage := answer.lineage_why:
        say(f"Lineage: {lineage}.")
    for each in answer.capabilities:
        error = "" if each.stderr is None else f" ± {each.stderr:.2g}"
        say(
            f"Capability {each.capability}: {each.verdict}"
            + ("" if each.delta is None else f", {each.delta:+.3g}{error} (normalised)")
        )
    changes = (*answer.config_changes, *answer.environment_changes)
    if changes:
        rows = [(each.path, _change(each), each.class_, each.old, each.new) for each in changes]
        print_rows(("setting", "change", "class", "old", "new"), rows)
    for what in ("config", "environment"):
        if unknown := answer.raw.get(f"{what}_why"):
            say(f"{what.capitalize()}: {unknown}; what is not recorded is not compared.")
    if answer.late_why:
        say(f"{answer.late_why[:1].upper()}{answer.late_why[1:]}.")
    say(f"Data: {_data(answer.data_changes)}")
    say(f"Code: {_code(answer.code_changes)}")
    _print_suspects(answer)


def _change(each: ConfigChange) -> str:
    """What a side did not record at all has been neither added nor removed."""
    side = each.raw.get("not_recorded_on")
    return f"not recorded on the {side}" if side else each.change


def _print_suspects(answer: Comparison) -> None:
    """Those that stand out; weak ones only after saying that none of them does."""
    first = [each for each in answer.suspects if each.strength in ("strong", "some")]
    for suspect in first:
        say(f"Suspect ({suspect.strength}{_of_suspicion(suspect)}): {', '.join(suspect.changes)}{_made(suspect)}")
    weak = [each for each in answer.suspects if each not in first]
    verdicts = [*(each.verdict for each in answer.scores), *(each.verdict for each in answer.capabilities)]
    if not first and (weak or any(verdict in FELL for verdict in verdicts)):
        say("Suspects: no change stands out.")
    for suspect in weak:
        say(f"Weak evidence{_of_suspicion(suspect)}: {', '.join(suspect.changes)}")


def _made(suspect: Suspect) -> str:
    """How the one came from the other, or of which size both are; of other changes the tables above say more."""
    told = any(each.startswith(("lineage.", "run.")) for each in suspect.changes)
    return f" ({suspect.reasons[0]})" if told and suspect.reasons else ""


def _of_suspicion(suspect: Suspect) -> str:
    return "" if suspect.share is None else f", {suspect.share * 100:.0f} % of the suspicion"


def _data(changes: Mapping[str, Any]) -> str:
    """How far the mix moved, and the sources that moved most."""
    moved = number_from_wire(changes.get("total_variation"))
    note = f"; {changes['note']}" if changes.get("note") else ""
    if moved is None:
        return f"{changes.get('why') or 'unknown'}{note}"
    sources = [each for each in changes.get("sources") or () if isinstance(each, dict)]
    shares = [f"{each.get('source')} {_share(each, 'old')} → {_share(each, 'new')}" for each in sources[:SOURCES]]
    of = "tokens seen" if changes.get("by_lineage") else "mix"
    return f"{moved * 100:.1f} % of the {of} changed" + (f" ({', '.join(shares)})" if moved and shares else "") + note


def _share(source: Mapping[str, Any], side: str) -> str:
    share = number_from_wire(source.get(f"{side}_share"))
    return "?" if share is None else f"{share * 100:.3g} %"


def _code(changes: Mapping[str, Any]) -> str:
    status, why = changes.get("status") or "unknown", changes.get("why")
    files = [each.get("path") for each in changes.get("files") or () if isinstance(each, dict)]
    known = f": {', '.join(map(str, files[:SOURCES]))}" if files else f": {why}" if why else ""
    return f"{status}{known}" + (f" and {len(files) - SOURCES} more" if len(files) > SOURCES else "")
