"""A save that the service has not heard of yet: the records of a long time away take more than the seconds that a
launch waits, and a process that hangs holds its own.

It goes on from such a save where the local record says enough: the service has opened its attempt, which is the run's
newest, and what the files say is what the launch needs. Everything else waits until it is sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cairn.client import Client
from cairn.resume.offline import Row, Wanted, row_of, unfit
from cairn.resume.shapes import SPOOL, Choice, PassedOver
from cairn.resume.told import Told
from cairn.resume.waiting import Left
from cairn.types import Run


@dataclass(frozen=True)
class Unsent:
    """What waits on this host of a run. `tiers`: only copies there, where any are named."""

    client: Client
    run: Run
    left: Left
    wanted: Wanted
    tiers: Sequence[str] = ()

    def beyond(self, known: Choice | None) -> Choice | None:
        """The newest save that fits and is newer than what the service knows; None where there is none."""
        passed: list[PassedOver] = []
        for told in self._newer(known):
            row = row_of(told, self.run.name)
            wrong = unfit(row, self.wanted) or self._not_wanted(row)
            if not wrong:
                said = f"{row.source}: whether it is suspect is not known until it is sent"
                before = known.fallbacks if known is not None else ()
                return Choice(row.uri, row.step, SPOOL, reasons=(said,), fallbacks=(*passed, *before))
            passed.append(PassedOver(row.uri, wrong))
        return None

    def _newer(self, known: Choice | None) -> Iterator[Told]:
        """The newest step first; only of the run's newest attempt, whose path nobody has left since."""
        attempts = self.left.attempts()
        if not attempts:
            return
        newest = max(each.number for each in self.client.list_attempts(self.run))
        here = known.checkpoint if known is not None else None
        there = (here.attempt or 0, here.step or 0) if here is not None else (0, -1)
        for each in attempts:
            if each.number != newest:
                continue
            for record in sorted(each.saves[-each.unsent :], key=lambda one: one["step"], reverse=True):
                if (newest, record["step"]) > there:
                    yield Told(newest, each.started_at, record)

    def _not_wanted(self, row: Row) -> str:
        tier = next((each.get("tier") for each in row.fields.get("replicas", ()) if each.get("uri") == row.uri), None)
        if self.tiers and tier not in self.tiers:
            return f"only copies on {', '.join(self.tiers)} are wanted"
        return ""
