"""What a checkpoint page says first: what it is good for, where it lies, and the ways on."""

from registry.checkpoints.detail import CheckpointDetail
from registry.ids import to_text
from registry.incidents.suspicion import Suspicion
from registry.overview.briefs import Brief
from registry.overview.runs import SavedStep
from registry.types import Presence, Resumability
from registry.wording import listed
from ui import filters
from ui.contexts import Answer, Link
from ui.links import address, segment


def answer_of(detail: CheckpointDetail, brief: Brief, suspicion: Suspicion | None, proof: Answer) -> Answer:
    """`proof`: whether a drill has shown that it comes back; one that failed counts for more than what is recorded."""
    if detail.state != "committed":
        tone = "warn" if detail.state == "pending" else "bad"
        why = "its save has not been confirmed yet" if detail.state == "pending" else "its files may be gone"
        return Answer(f"{detail.state.capitalize()}: {why}.", tone)
    words, tone = _use(detail)
    if suspicion is not None:
        return Answer(f"Suspect, so nothing resumes from it by itself: {suspicion.reason}.", "bad", f"{words}.")
    superseded = " A newer attempt went back before this step, so it is off the live path." if detail.superseded else ""
    if proof.tone == "bad":
        known = f"{proof.text} By what is recorded: {words[0].lower()}{words[1:]}; {_where(brief)}.{superseded}"
        return Answer("Not proven to come back: its last drill failed.", "bad", known)
    drilled = ", and it came back in a drill" if proof.tone == "good" else ""
    return Answer(f"{words}; {_where(brief)}{drilled}.", tone, superseded.strip())


def _use(detail: CheckpointDetail) -> tuple[str, str]:
    missing = [filters.words(name) for name, piece in detail.pieces.items() if piece.presence == Presence.ABSENT]
    unknown = [filters.words(name) for name, piece in detail.pieces.items() if piece.presence == Presence.UNKNOWN]
    match detail.resumability:
        case Resumability.EXACT:
            return "Resumes exactly: all four pieces are recorded", "good"
        case Resumability.RESUMABLE:
            lacks = "absent" if missing else "not known"
            return f"Resumable, though not bit for bit: the random state is {lacks}", "good"
        case Resumability.WEIGHTS_ONLY:
            return "Weights only: good for evaluation and fine-tuning, not for resuming", "warn"
        case Resumability.INCOMPLETE:
            return f"Incomplete: without {listed(missing)}", "bad"
        case _:
            return f"Whether it can be resumed is unknown: nobody said whether it has {listed(unknown)}", "unknown"


def _where(brief: Brief) -> str:
    copies = brief.copies
    if not copies.tiers:
        return "no copy of its files is recorded"
    amount = "one copy" if len(copies.tiers) == 1 else "copies"
    verified = f"verified on {listed(copies.verified_tiers)}" if copies.verified_tiers else "never verified"
    return f"{amount} on {listed(copies.tiers)} storage, {verified}"


def actions_of(detail: CheckpointDetail, before: SavedStep | None) -> tuple[Link, ...]:
    own, identity = detail.checkpoint, to_text(detail.checkpoint.id)
    links = [Link("Restore it", "#restore")]
    if before:
        compare = address("/compare", baseline=to_text(before.checkpoint_id), candidate=identity)
        links.append(Link("Compare with the one before", compare))
    aliases = [] if detail.aliases else ["production"]
    rollback = address("/rollback", run=to_text(own.run.id), step=str(own.step))
    links.append(Link("Roll the run back to here or before", rollback))
    for name in aliases if detail.state == "committed" else ():
        links.append(Link(f"Point {name} here…", address(f"/aliases/{segment(own.project)}/{name}", to=identity)))
    links.append(Link("More like this", address("/find", like=identity)))
    links.append(Link("Where it comes from", f"/checkpoints/{identity}/provenance"))
    if detail.data_version:
        same = address(
            "/find", mode="filter", filter=f"data_version = '{detail.data_version.name.replace(chr(39), chr(39) * 2)}'"
        )
        links.append(Link("Others with this data", same))
    return tuple(links)
