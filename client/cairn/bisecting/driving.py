"""Ask, evaluate, tell, until the search is over. All state is the service's: stop at any moment and start again."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cairn.bisecting.command import Placeholders, Template, path_of, run_command
from cairn.bisecting.outcome import Outcome, read_outcome
from cairn.client import Client
from cairn.errors import CairnError
from cairn.types import Bisect, CheckpointRef, NextEvaluation

Say = Callable[[str], None]


class EvaluationFailed(CairnError):
    """The command ended with an error; nothing was recorded of that evaluation."""


@dataclass(frozen=True)
class Finished:
    """`bisect` as it stands at the end; `evaluations`: how many were run here; `stopped`: why before the end."""

    bisect: Bisect
    evaluations: int
    stopped: str = ""


def drive(
    client: Client,
    bisect: Bisect,
    template: Template,
    *,
    say: Say,
    most: int = 100,
    keep_below: Path | None = None,
) -> Finished:
    """Evaluate what the search asks for, at most `most` times. Results are kept below `keep_below` where it is given.

    Raises `EvaluationFailed` where the command fails, `NoOutcome` where it writes no such score.
    """
    asked: set[tuple[str, int]] = set()
    count = 0
    while bisect.next is not None:
        upcoming = bisect.next
        key = (upcoming.checkpoint.id, upcoming.items)
        if key in asked:
            return Finished(bisect, count, f"{upcoming.checkpoint} was evaluated on {upcoming.items:,} items already")
        if count == most:
            return Finished(bisect, count, f"{most} evaluations were run")
        asked.add(key)
        bad = "" if upcoming.probability_bad is None else f" (bad with {upcoming.probability_bad:.0%})"
        say(f"Evaluating {upcoming.checkpoint} on {upcoming.items:,} items{bad}.")
        bisect = _evaluated(client, bisect, upcoming, template, keep_below, say)
        count += 1
    return Finished(bisect, count)


def _evaluated(
    client: Client, bisect: Bisect, upcoming: NextEvaluation, template: Template, keep_below: Path | None, say: Say
) -> Bisect:
    name = f"{bisect.id}-{upcoming.checkpoint.step}-{upcoming.items}"
    if keep_below is None:
        with tempfile.TemporaryDirectory(prefix=f"cairn-{name}-") as folder:
            return _told(client, bisect, upcoming, template, Path(folder), say)
    folder_kept = keep_below / name
    folder_kept.mkdir(parents=True, exist_ok=True)
    return _told(client, bisect, upcoming, template, folder_kept, say)


def _told(
    client: Client, bisect: Bisect, upcoming: NextEvaluation, template: Template, folder: Path, say: Say
) -> Bisect:
    checkpoint = upcoming.checkpoint
    known = Placeholders(path_of(upcoming.uri or ""), checkpoint.id, upcoming.items, folder)
    words = template.filled(known)
    try:
        code = run_command(words)
    except OSError as error:
        raise EvaluationFailed(f"The command cannot be started: {words[0]}: {error.strerror}.", code="") from None
    if code != 0:
        raise EvaluationFailed(
            f"The evaluation of {checkpoint} ended with {code}; nothing was recorded of it. Run the same command again "
            "to go on from here.",
            code="",
        )
    outcome = read_outcome(folder, bisect)
    # Of n items the service knows better what they are worth than a standard error that is blind to the pairing.
    stderr = outcome.stderr if outcome.n_samples is None else None
    say(f"{bisect.benchmark} of {checkpoint}: {outcome.value:.4g}{_kept(client, bisect, checkpoint, outcome)}.")
    return client.observe(bisect, checkpoint, outcome.value, stderr=stderr, n_samples=outcome.n_samples)


def _kept(client: Client, bisect: Bisect, checkpoint: CheckpointRef, outcome: Outcome) -> str:
    """Records a score of the whole benchmark for the checkpoint. One of a part is no such score: it would stand beside
    whole ones as if it were one, so that it is kept with the search alone."""
    if outcome.is_whole(bisect.benchmark_items):
        client.record_scores(checkpoint, [outcome.score.to_wire()])
        return ", recorded as a score of it"
    of = "" if outcome.n_samples is None else f" of {outcome.n_samples:,} items"
    return f"{of}, kept with the search and not as a score: it is not known to be of the whole benchmark"
