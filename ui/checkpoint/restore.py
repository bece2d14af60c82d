"""From which copy to restore a checkpoint, how long that takes, and what of it a layout can load, for its page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from registry.layout.cells import Verdict
from registry.layout.spec import DEGREES, ContradictoryLayout
from registry.recovery.copies import Option, tier_in_words
from registry.recovery.drills import DrillRow, list_drills
from registry.recovery.drills.queries import Asked as DrillsAsked
from registry.recovery.drills.shapes import FAILED, PASSED
from registry.recovery.restore_plan import RestorePlan, plan_restore
from registry.snapshots import LayoutSpec
from registry.types import INT64_MAX
from ui import filters
from ui.contexts import Answer, Command
from ui.contexts.restore import CopyRow, DrillLine, FitRow, RestoreBlock
from ui.durations import EXPECTED, read_seconds
from ui.words import grouped_steps

_DEGREE: Final = re.compile(r"([a-z_]{1,20})\s*=\s*([0-9]{1,19})")
MOST_HOSTS: Final = 1_000
SHOWN_DRILLS: Final = 10
VERDICTS: Final = {
    Verdict.EXACT: ("loads exactly", "good"),
    Verdict.CONVERTED: ("after a conversion", "warn"),
    Verdict.DRILL: ("not known: needs a drill", "unknown"),
    Verdict.REFUSED: ("refused", "bad"),
    Verdict.IMPOSSIBLE: ("not at all", "bad"),
}
TERMS: Final = {
    "detect_decide_schedule_seconds": "notice and schedule",
    "thaw_seconds": "thaw",
    "transfer_seconds": "read",
    "verify_seconds": "verify",
    "convert_seconds": "convert",
    "load_seconds": "load",
}


@dataclass(frozen=True)
class Asked:
    """The question of the address: texts as they were typed, and what was understood of them."""

    layout_text: str = ""
    rto_text: str = ""
    hosts_text: str = ""
    layout: LayoutSpec | None = None
    rto_seconds: float | None = None
    hosts: tuple[str, ...] = ()


def read_question(layout: str, rto: str, hosts: str) -> tuple[Asked, list[str]]:
    """The question, and a notice for each part that was left out because it cannot be read."""
    notices = []
    degrees, wrong = _degrees(layout)
    if wrong:
        known = ", ".join(DEGREES)
        notices.append(f"‘{filters.middle(wrong, 40)}’ is no degree of a layout such as tp=4,pp=2,dp=8 ({known}).")
    seconds = read_seconds(rto)
    if seconds is None and rto.strip():
        notices.append(f"‘{filters.middle(rto, 40)}’ is no {EXPECTED.removeprefix('a ')}: it was left out.")
    names = tuple(dict.fromkeys(re.split(r"[\s,]+", hosts.strip())))[:MOST_HOSTS] if hosts.strip() else ()
    spec = LayoutSpec(**degrees) if degrees and not wrong else None
    return Asked(layout.strip(), rto.strip(), hosts.strip(), spec, seconds, names), notices


def _degrees(text: str) -> tuple[dict[str, Any], str]:
    """(the degrees, the first part that is none)."""
    found: dict[str, Any] = {}
    for part in (each.strip() for each in text.split(",")):
        if not part:
            continue
        degree = _DEGREE.fullmatch(part)
        if degree is None or degree[1] not in DEGREES or degree[1] in found or not 1 <= int(degree[2]) <= INT64_MAX:
            return {}, part
        found[degree[1]] = int(degree[2])
    return found, ""


def restore_block(session: Session, checkpoint_id: int, identity: str, asked: Asked) -> tuple[RestoreBlock, list[str]]:
    """The plan for the layout asked for, else for the one that it was saved in; and what was left out of the question.

    Raises CheckpointNotFound.
    """
    notices: list[str] = []
    layout = asked.layout

    def plan(wanted: LayoutSpec | None) -> RestorePlan:
        return plan_restore(
            session, checkpoint_id, layout=wanted, rto_seconds=asked.rto_seconds, hosts=frozenset(asked.hosts)
        )

    try:
        found = plan(layout)
    except ContradictoryLayout as error:
        notices.append(f"The layout was left out: {error.message}")
        layout, found = None, plan(None)
    drills = list_drills(session, DrillsAsked(checkpoint_id=checkpoint_id), limit=SHOWN_DRILLS)
    return _block(found, identity, asked, layout, drills), notices


def _block(
    plan: RestorePlan, identity: str, asked: Asked, layout: LayoutSpec | None, drills: Sequence[DrillRow]
) -> RestoreBlock:
    tone = "bad" if plan.obstacle or plan.chosen is None else "good"
    if not plan.obstacle and plan.chosen is None and any(each.awaits for each in plan.copies):
        tone = "warn"
    stuck = any(fit.verdict in (Verdict.REFUSED, Verdict.IMPOSSIBLE) for fit in plan.compatibility.pieces.values())
    if tone == "good" and ((stuck and layout is not None) or _is_late(plan)):
        tone = "warn"
    notes = tuple(text.rstrip(".") for text in (*plan.notes, *plan.assumptions))
    return RestoreBlock(
        answer=Answer(grouped_steps(plan.sentence), tone),
        path=f"/checkpoints/{identity}#restore",
        copies=tuple(_copy(each) for each in plan.copies),
        fits=tuple(
            FitRow(name.value, *VERDICTS[fit.verdict], fit.words) for name, fit in plan.compatibility.pieces.items()
        ),
        notes=notes,
        layout=asked.layout_text,
        rto=asked.rto_text,
        hosts=asked.hosts_text,
        asked=layout is not None,
        proof=_proof(plan),
        replay=grouped_steps(f"To train again: {plan.replay.words}."),
        drills=tuple(_drill(each) for each in drills),
        drill_command=Command(
            "Rehearse it on this machine; the command loads it and writes its losses:",
            f"cairn drill {identity} -- python train.py --load {{path}} --steps {{steps}} --losses {{out}}",
        )
        if plan.copies
        else None,
        command=None
        if plan.chosen is None or plan.obstacle
        else Command("Bring it to this machine, checked as it arrives:", f"cairn fetch {identity} FOLDER"),
    )


def _proof(plan: RestorePlan) -> Answer:
    proof = plan.proof
    failed = not proof.proven and "failed" in proof.words
    words = f"{proof.words[0].upper()}{proof.words[1:]}."
    return Answer(words, "good" if proof.proven else "bad" if failed else "unknown")


def _drill(row: DrillRow) -> DrillLine:
    seconds = [row.seconds[stage] for stage in ("read", "verify", "convert", "load")]
    known = [each for each in seconds if each is not None]
    verdict, tone = _drill_verdict(row)
    said = row.comparison if row.verdict == PASSED else row.reason
    lead = _continuation(row)
    return DrillLine(
        when=row.ended_at,
        verdict=verdict,
        tone=tone,
        host=row.host,
        tier=tier_in_words(row.tier) if row.tier else "",
        took=filters.duration(sum(known)) if known else filters.MISSING,
        words=lead or said,
        figures=said if lead else "",
    )


def _drill_verdict(row: DrillRow) -> tuple[str, str]:
    """What a drill proves: one that loaded nothing and trained no step shows only that the files can be read."""
    if row.verdict != PASSED:
        return "failed", "bad"
    if row.steps_run:
        return ("exact" if row.exact else "passed"), "good"
    return ("ended well", "plain") if row.checks.run == PASSED else ("read only", "plain")


def _continuation(row: DrillRow) -> str:
    """What the losses of the drill say, before their figures; '' where nothing was compared."""
    if row.continuation == FAILED:
        return "Its losses did not go on as recorded."
    if row.continuation != PASSED:
        return ""
    unlike = ", unlike those of a start without it" if row.cold_start == PASSED else ""
    return f"Its losses went on as recorded{unlike}."


def _is_late(plan: RestorePlan) -> bool:
    time = plan.chosen.time if plan.chosen is not None else None
    return plan.rto_seconds is not None and time is not None and time.p95 > plan.rto_seconds


def _copy(each: Option) -> CopyRow:
    time = each.time
    return CopyRow(
        uri=each.place.uri,
        tier=tier_in_words(each.place.tier),
        usable=each.feasible,
        reason=each.reason,
        expected=filters.MISSING if time is None else filters.duration(time.expected),
        p95=filters.MISSING if time is None else filters.duration(time.p95),
        terms="" if time is None else _terms(time.terms),
    )


def _terms(terms: Mapping[str, float]) -> str:
    """What the time is made of: 'notice and schedule 8 min, read 25 s, load 20 s'."""
    known: Sequence[tuple[str, float]] = [(TERMS.get(name, name), value) for name, value in terms.items() if value]
    return ", ".join(f"{name} {filters.duration(value)}" for name, value in known)
