"""The tables of a run page: its scores, its attempts, its checkpoints."""

from collections.abc import Sequence

from registry.aliases import AliasRow
from registry.attempts import AttemptRow as Attempt
from registry.ids import to_text
from registry.incidents.receipts import Confirmation
from registry.overview.attempts import Progress
from registry.overview.briefs import Brief
from registry.overview.scores import MetricName, RunScore
from ui import filters
from ui.contexts.run import AttemptRow, CheckpointRow, ScoreCell, ScoreTableRow
from ui.refs import is_reported, ref_of


def score_rows(
    ids: Sequence[int], metrics: Sequence[MetricName], scores: Sequence[RunScore], briefs: dict[int, Brief]
) -> tuple[ScoreTableRow, ...]:
    found = {(score.checkpoint_id, score.metric_id): _score_cell(score) for score in scores}
    return tuple(
        ScoreTableRow(ref_of(briefs[each]), tuple(found.get((each, metric.id), ScoreCell()) for metric in metrics))
        for each in ids
        if each in briefs
    )


def _score_cell(score: RunScore) -> ScoreCell:
    via = None if score.via is None else f"/checkpoints/{to_text(score.via)}"
    return ScoreCell(score.value, score.stderr, via)


def attempt_row(
    attempt: Attempt,
    briefs: dict[int, Brief],
    progress: Progress,
    receipt: Confirmation | None,
    *,
    is_followed: bool = False,
) -> AttemptRow:
    """`is_followed`: another attempt went on from it, so that it does not run, whatever was said last."""
    point = attempt.resumed_from
    loaded = briefs.get(point.checkpoint_id) if point and point.checkpoint_id else None
    return AttemptRow(
        number=attempt.number,
        state=_state(attempt, is_followed),
        resumed_from=ref_of(loaded) if loaded else None,
        resumed_words=_loaded_words(attempt),
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        last_step=progress.reached_step,
        saved_step=progress.saved_step,
        live_through=attempt.live_through_step,
        reason=attempt.reason,
        checkpoints=progress.checkpoints,
        started_over=attempt.live_through_step is not None and attempt.live_through_step < 0,
        resume=_resume_words(receipt) if point is not None else "",
        resume_tone={"confirmed": "good", "partial": "warn"}.get(receipt.state if receipt else "", "unknown"),
        skips=tuple(attempt.skip),
        changes=attempt.changes or "",
    )


def _loaded_words(attempt: Attempt) -> str:
    """Where no checkpoint is known: a start from scratch only where somebody said so."""
    if attempt.resumed_from is not None:
        return f"step {filters.grouped(attempt.resumed_from.step)}, not registered"
    if attempt.restart:
        return "from scratch" if attempt.number == 1 else "started over"
    return "not said"


def _state(attempt: Attempt, is_followed: bool) -> str:
    if not is_reported(attempt):
        return "not reported"
    return "ended, nobody said how" if is_followed and attempt.state == "running" else attempt.state


def _resume_words(receipt: Confirmation | None) -> str:
    """What was restored, as the attempt's receipts say: loading a piece may have been a no-op."""
    if receipt is None or receipt.state == "unconfirmed":
        return "unconfirmed"
    if receipt.state == "confirmed":
        return "confirmed"
    missing = [
        f"{filters.words(piece)} {word}" for piece, word in receipt.pieces.items() if word in ("fresh", "absent")
    ]
    return ", ".join(missing)


def checkpoint_row(brief: Brief, aliases: Sequence[AliasRow], scores: int, suspect: bool) -> CheckpointRow:
    return CheckpointRow(
        ref=ref_of(brief, suspect=suspect),
        resumability=brief.resumability.value,
        loss=brief.loss,
        tokens_seen=brief.tokens_seen,
        bytes=brief.copies.bytes,
        replicas=", ".join(brief.copies.tiers) or "none recorded",
        scores=scores,
        aliases=tuple(alias.name for alias in aliases if alias.checkpoint_id == brief.id),
    )
