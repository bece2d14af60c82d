"""What a rollback's answer says in sentences: the answer itself, and what in it is assumed."""

from collections.abc import Sequence
from typing import Final

from registry.recovery import restore_time
from registry.recovery.answers import Candidate, WatchedOnset
from registry.recovery.eligible import IN_WORDS, TRAINING
from registry.recovery.every_capability import Overlook
from registry.recovery.ranking import P_OK
from registry.recovery.telling import Told
from registry.recovery.unasked import unasked, what_fell
from registry.wording import counted, was

NO_FALL: Final = "No fall is established: nothing here speaks for going back. If you must:"


def sentence(told: Told, considered: int, mode: str) -> str:
    """The answer in a few sentences: what was seen, and where to go back to or what to loosen."""
    if not told.candidates:
        return _nothing_left(told, considered)
    first = headline(told, mode)
    if told.onset is not None and told.onset.is_established:
        said = [_seen(told.onset), first, told.why_not_good]
    elif told.onset is not None:
        said = [first, _seen(told.onset), told.why_not_good]
    else:
        came_back = told.spike is not None and told.spike.spike.recovered
        said = [first, told.spike.sentence if told.spike is not None and came_back else ""]
        said.append(what_fell(told.overlook) if told.overlook is not None else "")
    said.append(_doubt(told.candidates[0]))
    if told.served is not None:
        said.append(f"{told.served.sentence}.")
    return " ".join(filter(None, said))


def headline(told: Told, mode: str) -> str:
    """Where to go back to, if anything speaks for it; '' without a candidate."""
    if not told.candidates:
        return ""
    best = told.candidates[0].checkpoint
    where = f"step {best.step} of {best.run.name} (attempt {best.attempt})"
    if told.served is not None and told.served.is_best:
        stay = f"step {told.served.checkpoint.step}, which is served now, scores better than every candidate"
        return f"Nothing speaks for going back: {stay}. If you must: {where}."
    if told.onset is not None:
        return _watched_headline(told, told.onset, best.step, where)
    if told.spike is not None and not told.spike.spike.recovered:
        return f"{told.spike.sentence} Go back to {where}."
    return unasked(told.overlook or Overlook(), mode, best.step, where)


def _watched_headline(told: Told, onset: WatchedOnset, step: int, where: str) -> str:
    if onset.is_established:
        return f"Go back to {where}."
    if told.served is not None and told.served.is_beaten:
        better = f"step {step} scores better than what is served now"
        return f"No fall is established over the run, but {better}. Go back to {where}."
    return f"{NO_FALL} {where}."


def _doubt(first: Candidate) -> str:
    """What to have ready where a drill of the first candidate failed; '' where none did."""
    if first.terms["evidence"] != "failed":
        return ""
    behind = first.terms.get("fallback_step")
    ready = f" Have step {behind:.0f} ready." if isinstance(behind, float) else ""
    return f"The last drill of it failed, so it may not load.{ready}"


def _nothing_left(told: Told, considered: int) -> str:
    seen = f"{_seen(told.onset)} " if told.onset is not None else f"{told.spike.sentence} " if told.spike else ""
    if not considered:
        return f"{seen}There are no checkpoints yet: record one first."
    counts = told.excluded_counts
    why = ", ".join(IN_WORDS[name] if len(counts) == 1 else f"{IN_WORDS[name]}: {n}" for name, n in counts.items())
    both = {1: "", 2: ", both"}.get(len(told.loosen), ", all of these")
    return (
        f"{seen}No checkpoint is left to go back to: {left_out(considered, considered)} ({why}). "
        f"To loosen that{both}: {'; '.join(told.loosen.values())}."
    )


def _seen(onset: WatchedOnset) -> str:
    """What the scan saw, and whose results it did not count."""
    why = f"{onset.why[0].upper()}{onset.why[1:]}." if onset.why else ""
    if onset.onset is None:
        return why
    return f"{onset.watch.words}: {onset.onset.sentence} {why}".rstrip()


def left_out(count: int, considered: int) -> str:
    """'12 of 14 checkpoints were left out'."""
    if count == considered:
        words = {1: "the only checkpoint was", 2: "both checkpoints were"}.get(count, f"all {count} checkpoints were")
        return f"{words} left out"
    return f"{count} of {considered} checkpoints {was(count)} left out"


def assumptions(
    mode: str,
    *,
    rate_known: bool,
    assumed_rate: float,
    errors_assumed: bool,
    candidates: Sequence[Candidate],
    times_asked: bool,
    times_assumed: int,
    considered: int,
    lead_steps: int | None,
) -> tuple[str, ...]:
    """What nobody measured, in sentences: only what entered this answer."""
    said = []
    if any(each.terms["restore_minutes"] is not None for each in candidates):
        said.append(restore_time.ASSUMED)
    if candidates:
        chances = ", ".join(f"{name} {chance:.0%}" for name, chance in P_OK.items())
        said.append(f"The chance that a restore works is assumed by its evidence: {chances}")
    if mode == TRAINING and not rate_known and candidates:
        said.append(f"A step is assumed to take {assumed_rate:.0f} s, since no save times are recorded")
    if errors_assumed:
        said.append("Some standard errors assume 100 samples, since nobody said how many there were")
    if lead_steps is not None:
        said.append(f"The cause of a spike is assumed to lie at most {lead_steps} steps before its first point")
    if times_asked and times_assumed:
        said.append(
            f"Nobody said when {times_assumed} of {counted(considered, 'checkpoint')} {was(times_assumed)} saved: the "
            "times asked for were held "
            "against the arrival of their records"
        )
    return tuple(said)
