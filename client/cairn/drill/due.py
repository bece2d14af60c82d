"""What is to be drilled again: of each run whose last drill is too long ago, the newest checkpoint that can be tried
here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cairn.client import Client
from cairn.drill.choosing import NothingToDrill, Target, choose_copy
from cairn.types import CheckpointRef, Run

CANDIDATES = 50  # checkpoints of a run that are looked at
LAST = 20  # drills of a run: they may have been recorded in another order than they were made in


@dataclass(frozen=True)
class Due:
    """A run whose drill is due. `target` None: nothing of it can be tried from this host; `why` says so."""

    run: Run
    last: datetime | None
    target: Target | None
    why: str = ""


def find_due(client: Client, runs: Iterable[Run], host: str, since: datetime) -> Iterator[Due]:
    """The runs that have no drill, passed or failed, after `since`; those without a checkpoint are left out.

    One by one, so that what is drilled meanwhile by others is seen.
    """
    for run in runs:
        last = max((each.ended_at for each in client.list_drills(run=run, limit=LAST) if each.ended_at), default=None)
        if last is not None and last > since:
            continue
        plan = client.resume_plan(run, require=["weights"], hosts=[host], limit=CANDIDATES)
        if not plan.considered:
            continue
        target, why = _first(client, [each.checkpoint for each in plan.candidates], host)
        yield Due(run, last, target, why or (plan.sentence if target is None else ""))


def _first(client: Client, found: Iterable[CheckpointRef], host: str) -> tuple[Target | None, str]:
    """The newest archive that can be tried here, else the newest of the other kind."""
    why, shut = "", dict[str, str]()
    for each in sorted(found, key=lambda one: one.kind != "archive"):
        try:
            return choose_copy(client, client.get_checkpoint(each.id), host, shut=shut), ""
        except NothingToDrill as nothing:
            why = why or f"{each}: {nothing.detail}"
    return None, why
