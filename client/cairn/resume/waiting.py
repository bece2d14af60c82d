"""What this host has recorded of a run and the service does not have: sent before anything is chosen.

Training saves on while the service is away, and a kill leaves the last records on disk. Whoever chooses without them
goes back further than needed, or starts over.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from cairn.client import Client
from cairn.errors import CairnError
from cairn.spool.census import Held, held_here, holder_of
from cairn.spool.places import REFUSED, roots, spool_folders
from cairn.spool.refused import refusals
from cairn.spool.service import is_same
from cairn.spool.unfinished import FOLDER, Unfinished

SECONDS = 5.0  # a launch waits for this
PATIENT_SECONDS = 60.0  # where records are of use only once the service has them, and they do go out
POLL_SECONDS = 0.2
_log = logging.getLogger("cairn")


@dataclass(frozen=True)
class Left:
    """What still waits here. `refused` are saves that the service did not take, `sent` those that it has since."""

    run: str = ""
    held: tuple[Held, ...] = ()
    refused: int = 0
    service: str = ""
    sent: int = 0

    @property
    def records(self) -> int:
        return sum(each.waiting for each in self.held)

    @property
    def saves(self) -> int:
        """Without them nothing that was saved is missing at the service."""
        return self.unsent + self.refused

    @property
    def unsent(self) -> int:
        return sum(each.unsent for each in self.held)

    def attempts(self) -> list[Held]:
        """Those with saves that the service lacks, where this service has opened the attempt: of these it is known
        where they stand among the others."""
        return [each for each in self.held if each.unsent and each.number is not None and self._is_ours(each)]

    def sentence(self) -> str:
        """'' where nothing waits."""
        told = []
        if self.records:
            steps = [record["step"] for each in self.held if each.unsent for record in each.saves[-each.unsent :]]
            newest = f" with saves up to step {max(steps):,}" if steps else ""
            records = "1 record" if self.records == 1 else f"{self.records:,} records"
            told.append(f"{records} of {self.run}{newest} wait on this host; {self._next_move()}")
        if self.refused:
            saves = "1 save" if self.refused == 1 else f"{self.refused:,} saves"
            told.append(
                f"{saves} of {self.run} {_were(self.refused)} refused by the service; `cairn spool list` says why"
            )
        return ". ".join(told) + "." if told else ""

    def tell(self, say: Callable[[str], None]) -> None:
        if sentence := self.sentence():
            say(sentence)

    def _next_move(self) -> str:
        elsewhere = sorted({each.service for each in self.held if not self._is_ours(each)})
        if elsewhere:
            return f"they are for {', '.join(elsewhere)}: `cairn spool flush --here` sends them to this service"
        holders = [holder_of(each.folder) for each in self.held if each.waiting]
        running = next((each for each in holders if each is not None and each.is_alive), None)
        if running is not None:
            return f"process {running.pid} on {running.host}, which still runs, sends them"
        return "`cairn spool flush` sends them or says why not"

    def _is_ours(self, each: Held) -> bool:
        return not each.service or is_same(each.service, self.service)


def send_waiting(client: Client, run: str, seconds: float = SECONDS, *, patiently: bool = False) -> Left:
    """Sends what processes that have ended left of a run (project/run), and commits its saves that have become whole.

    Takes `seconds` at most, or `patiently` a minute as long as records go out: what goes on then is a daemon's, and
    what it does not finish stays in the spool. A process that lives is waited for `seconds`, since it sends by itself.
    Never raises `CairnError`.
    """
    before = left_here(run)
    if before.records or _has_unfinished(run):
        sender = threading.Thread(target=_send, args=(client, run, seconds), name="cairn-resume", daemon=True)
        sender.start()
        sender.join(seconds)
        if patiently:
            join_while_it_gets_on(sender, seconds, lambda: left_here(run).records)
    left = left_here(run, client.url)
    return replace(left, sent=max(before.unsent - left.unsent, 0))


def join_while_it_gets_on(
    sender: threading.Thread, seconds: float, waiting: Callable[[], int], at_most: float = PATIENT_SECONDS
) -> None:
    """Until it has ended, or fewer records have not become fewer still within `seconds`."""
    ends, before = time.monotonic() + at_most, None
    while sender.is_alive() and time.monotonic() < ends:
        now = waiting()
        if before is not None and now >= before:
            return
        before = now
        sender.join(seconds)


def left_here(run: str, service: str = "") -> Left:
    """What waits of a run in the spools of this host, without sending anything."""
    held = tuple(each for each in held_here(run) if each.waiting)
    refused = sum(each.kind == "saved" and each.run == run for root in roots() for each in refusals(root))
    return Left(run, held, refused, service)


def holds_anything() -> bool:
    """Whether anything was left here at all: where nothing was, a launch has nothing to read and nobody to ask."""
    return any(
        (root / folder).is_dir() or next(spool_folders(root), None) for root in roots() for folder in (REFUSED, FOLDER)
    )


def _has_unfinished(run: str) -> bool:
    """Whether saves of the run were not whole when somebody last looked."""
    saves = (save for root in roots() for save in Unfinished(root).saves())
    return any(run in (each.run, each.facts.get("run_id")) for each in saves)


def _send(client: Client, run: str, seconds: float) -> None:
    from cairn.spool.flush import flush  # it knows of jobs of `cairn exec` too, which choose what they load here

    ends = time.monotonic() + seconds
    try:
        while True:
            flush(client, run=run)
            if not _is_being_sent(run) or time.monotonic() > ends:
                return
            time.sleep(POLL_SECONDS)
    except CairnError:
        return  # whoever chooses meets the same and says it
    except Exception:  # a mistake of ours must not stand in the way of a launch
        _log.debug("what waits could not be sent", exc_info=True)


def _is_being_sent(run: str) -> bool:
    """Whether a process that lives holds records of the run: it sends them itself, within a moment."""
    holders = (holder_of(each.folder) for each in held_here(run) if each.waiting)
    return any(each is not None and each.is_alive for each in holders)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
