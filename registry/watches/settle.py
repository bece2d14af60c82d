"""Bring the findings of a watch to what its last look saw: open what is new, and withdraw what is gone.

A finding is met again by the score that raised it, or by the steps it spans, so that a score that arrives late, or a
spike that goes on, changes a finding and opens no second one. One that nothing speaks for any more (the score was
evaluated again, the steps were left behind) is withdrawn, never deleted. One that was acknowledged opens again where
the fall is a new one: it had gone, or a later score raises it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import outbox, strict_json
from registry.db import now
from registry.ids import new_id, to_text
from registry.models import Finding
from registry.watches.standing import WatchRow

OPEN, ACKNOWLEDGED, WITHDRAWN = "open", "acknowledged", "withdrawn"
OPENED: Final = "finding.opened"
GONE: Final = "finding.withdrawn"


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding as a look sees it. `detail` holds its figures; `good_id`: the last checkpoint before the fall."""

    run_id: int
    checkpoint_id: int | None
    from_step: int
    to_step: int
    sentence: str
    detail: Mapping[str, Any]
    good_id: int | None


def settle(session: Session, watch: WatchRow, drafts: Sequence[Draft], since_step: int = 0) -> int:
    """Write the drafts; gives how many findings were opened, or opened again. The watch is locked by the caller."""
    moment, opened = now(), 0
    query = select(Finding).where(Finding.project_id == watch.project_id, Finding.watch_id == watch.id)
    left = list(session.scalars(query.order_by(Finding.id).execution_options(populate_existing=True)))
    for draft in drafts:
        finding = _met(left, draft)
        if finding is not None:
            left.remove(finding)
            opened += _renew(session, watch, finding, draft, moment)
        else:
            _open(session, watch, draft, moment)
            opened += 1
    for finding in left:
        if finding.state != WITHDRAWN and finding.from_step >= since_step:
            finding.state, finding.changed_at = WITHDRAWN, moment
            outbox.announce(session, watch.project_id, GONE, [finding.id], _told(watch, finding))
    session.flush()
    return opened


def _met(left: Sequence[Finding], draft: Draft) -> Finding | None:
    """The finding that a draft speaks of: raised by the same score, else of the same run and steps."""
    of_run = [each for each in left if each.run_id == draft.run_id]
    if draft.checkpoint_id is not None:
        same = next((each for each in of_run if each.checkpoint_id == draft.checkpoint_id), None)
        if same is not None:
            return same
    return next((each for each in of_run if _overlap(each, draft)), None)


def _overlap(finding: Finding, draft: Draft) -> bool:
    """Whether both span a step. The last good step of a fall may be the end of the fall before it: that is none."""
    low = 1 if draft.checkpoint_id is not None else 0
    return finding.from_step + low <= draft.to_step and draft.from_step + low <= finding.to_step


def _open(session: Session, watch: WatchRow, draft: Draft, moment: datetime) -> None:
    finding = Finding(
        id=new_id(),
        project_id=watch.project_id,
        watch_id=watch.id,
        run_id=draft.run_id,
        state=OPEN,
        opened_at=moment,
        changed_at=moment,
    )
    _fill(finding, draft)
    session.add(finding)
    session.flush()
    outbox.announce(session, watch.project_id, OPENED, [finding.id], _told(watch, finding))


def _renew(session: Session, watch: WatchRow, finding: Finding, draft: Draft, moment: datetime) -> int:
    """1 where it opens again: it was withdrawn, or acknowledged before a later score raised it."""
    before = (finding.checkpoint_id, finding.from_step, finding.to_step, finding.sentence, finding.detail)
    is_another = draft.checkpoint_id not in (None, finding.checkpoint_id) and draft.to_step > finding.to_step
    _fill(finding, draft)
    if before != (finding.checkpoint_id, finding.from_step, finding.to_step, finding.sentence, finding.detail):
        finding.changed_at = moment
    if finding.state == OPEN or (finding.state == ACKNOWLEDGED and not is_another):
        return 0
    finding.state, finding.changed_at = OPEN, moment
    finding.acknowledged_at = finding.acknowledged_by = None  # nobody has seen this fall
    outbox.announce(session, watch.project_id, OPENED, [finding.id], _told(watch, finding))
    return 1


def _fill(finding: Finding, draft: Draft) -> None:
    detail = dict(draft.detail)
    if draft.good_id is not None:
        detail["last_good_checkpoint"] = to_text(draft.good_id)
    finding.checkpoint_id, finding.from_step, finding.to_step = draft.checkpoint_id, draft.from_step, draft.to_step
    finding.sentence, finding.detail = draft.sentence, strict_json.canonical(detail)


def _told(watch: WatchRow, finding: Finding) -> dict[str, Any]:
    """What the event says."""
    return {
        "sentence": finding.sentence,
        "watch": to_text(watch.id),
        "watched": watch.words,
        "run": to_text(finding.run_id),
        "alias": watch.alias,
        "checkpoint": None if finding.checkpoint_id is None else to_text(finding.checkpoint_id),
        "from_step": finding.from_step,
        "to_step": finding.to_step,
    }
