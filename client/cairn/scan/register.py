"""Sends a plan in batches. What the service refuses is set aside with its reason, and the rest goes on."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from cairn.calls.base import literal
from cairn.client import Client
from cairn.errors import CairnError, Conflict, Invalid, TooLarge
from cairn.scan.opening import ASSUMED, to_open
from cairn.scan.plan import REFUSED, Item, Plan
from cairn.types import Run

BATCH_ITEMS = 500
Progress = Callable[[int], None]
_PLACE = re.compile(r"/(?P<index>\d+)(?P<rest>/.*)?")


def register(plan: Plan, client: Client, progress: Progress | None = None) -> int:
    """Records what the plan says is new; answers how many were. `progress` receives numbers of checkpoints done.

    Raises `CairnError` where the service cannot be reached or refuses the caller: what was sent before is recorded.
    """
    client.create_project(plan.project)
    _open_attempts(plan, client)
    _find_parents(plan, client)
    sender = _Sender(plan, client, progress or (lambda count: None))
    sender.send_copies()
    while sender.send_all(plan.batches(BATCH_ITEMS)) or plan.cut_circles():
        pass
    return sender.recorded


def _open_attempts(plan: Plan, client: Client) -> None:
    """Where `cairn.json` says what an attempt loaded, it is opened with that. Else a batch opens attempts one after the
    other; where some are gone, the newest is opened by itself.

    What that loaded nobody wrote down; the service assumes the step before its first one, and so does this.
    """
    for name, found in plan.began().items():
        owner = client.create_run(plan.project, name)
        newest = max((each.number for each in client.list_attempts(owner)), default=0)
        _open_as_said(plan, client, owner, to_open(found, newest))
    for run, number, first in plan.gaps():
        made = client.create_run(plan.project, run)
        if number > 1 + max((each.number for each in client.list_attempts(made)), default=0):
            source = {"attempt": number - 1, "step": max(first - 1, 0)}
            client.start_attempt(made, key=f"scan-{number}", resumed_from=source, reason=ASSUMED)


def _open_as_said(plan: Plan, client: Client, run: Run, bodies: Iterator[tuple[int, dict[str, Any]]]) -> None:
    for number, body in bodies:
        try:
            client.start_attempt(run, key=f"scan-{number}", **body, warn=False)
        except (Invalid, Conflict) as fault:
            plan.spool.problem(str(run), f"attempt {number} is recorded without what it loaded: {fault.detail}")
            return


def _find_parents(plan: Plan, client: Client) -> None:
    """Parents that were not found on storage may be recorded all the same."""
    for run, attempt, step, kind in plan.missing_parents():
        which = f"run.name = {literal(run)} and attempt = {attempt} and step = {step} and kind = {literal(kind)}"
        for found in client.iter_checkpoints(filter=f"project = {literal(plan.project)} and {which}", limit=1):
            plan.know_parent((run, attempt, step, kind), found.id)


class _Sender:
    def __init__(self, plan: Plan, client: Client, progress: Progress) -> None:
        self._plan, self._client, self._progress = plan, client, progress
        self.recorded = 0

    def send_copies(self) -> None:
        for number, checkpoint, replica in self._plan.copies():
            try:
                self._client.add_replicas(checkpoint, [replica])
            except (Invalid, Conflict) as fault:
                self._plan.refused_copy(number, fault.detail)
            else:
                self._plan.sent(number, checkpoint)
                self.recorded += 1
            self._progress(1)

    def send_all(self, batches: Iterator[list[Item]]) -> int:
        """While one batch is on its way, the next is made. Answers how many checkpoints were sent."""
        count = 0
        with ThreadPoolExecutor(1) as pool:
            waiting: tuple[list[Item], Future[dict[int, str]]] | None = None
            for batch in batches:
                count += len(batch)
                sending = pool.submit(self._send, [item for _, item in batch])
                if waiting is not None:
                    self._keep(*waiting)
                waiting = batch, sending
            if waiting is not None:
                self._keep(*waiting)
        return count

    def _keep(self, batch: Sequence[Item], sending: "Future[dict[int, str]]") -> None:
        answers = sending.result()
        for place, (number, item) in enumerate(batch):
            answer = answers[place]
            if answer.startswith(REFUSED):
                self._plan.refused(number, item, answer.removeprefix(f"{REFUSED} "))
            else:
                self._plan.sent(number, answer)
                self.recorded += 1
        self._progress(len(batch))

    def _send(self, items: Sequence[Mapping[str, Any]]) -> dict[int, str]:
        """By place the id of each checkpoint, or `refused` and why. A batch is all or none, so the rest goes again."""
        answers: dict[int, str] = {}
        left = list(range(len(items)))
        while left:
            try:
                report = self._client.register_batch([items[place] for place in left])
            except (Invalid, Conflict) as fault:
                refused = _refused(fault, len(left))
                if not refused:
                    answers |= self._halved(items, left, fault)
                    return answers
                answers |= {left[place]: f"{REFUSED} {reason}" for place, reason in refused.items()}
                left = [place for at, place in enumerate(left) if at not in refused]
            except TooLarge as fault:
                answers |= self._halved(items, left, fault)
                return answers
            else:
                answers |= {left[each.index]: each.id for each in report.results}
                return answers
        return answers

    def _halved(self, items: Sequence[Mapping[str, Any]], left: Sequence[int], fault: CairnError) -> dict[int, str]:
        """Where the refusal names no item, or the body is too large: both halves by themselves."""
        if len(left) == 1:
            return {left[0]: f"{REFUSED} {fault.detail}"}
        answers: dict[int, str] = {}
        for half in (left[: len(left) // 2], left[len(left) // 2 :]):
            found = self._send([items[place] for place in half])
            answers |= {half[place]: answer for place, answer in found.items()}
        return answers


def _refused(fault: CairnError, count: int) -> dict[int, str]:
    """The places that a refusal names, and what it says of each."""
    reasons: dict[int, list[str]] = {}
    for each in fault.errors:
        found = _PLACE.fullmatch(each.pointer)
        if found and int(found["index"]) < count:
            where = f"{found['rest'][1:]}: " if found["rest"] else ""
            reasons.setdefault(int(found["index"]), []).append(f"{where}{each.message}")
    return {place: "; ".join(said[:5]) for place, said in reasons.items()}
