"""The choice itself: the service's order, held against what this host can see."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.client import Client
from cairn.drilled import refuse_in_drill
from cairn.errors import CairnError, ConnectionFailed, Invalid, NotFound, Unavailable
from cairn.resume import state
from cairn.resume.agree import agree
from cairn.resume.offline import Wanted, choose_offline
from cairn.resume.reach import reach
from cairn.resume.shapes import REGISTRY, Choice, Launch, NothingToResume, PassedOver
from cairn.resume.unsent import Unsent
from cairn.resume.waiting import Left, holds_anything, send_waiting
from cairn.stores import is_url
from cairn.types import CheckpointRef, CopyOption, ResumePlan, Run, RunRef

DEFAULT_PIECES = ("optimizer", "data_position")
PIECES = ("weights", *DEFAULT_PIECES, "random_state")
TIERS = ("local", "shared", "object")
CANDIDATES = 10  # asked for at once
LOOK_SECONDS = 120.0  # where none of them can be read here, more are asked for no longer than this
MAX_SKIPPED = 1_000  # so many the service takes
NODE_COUNTS = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "PET_NNODES", "GROUP_WORLD_SIZE")
SHOWN = 3


def choose(
    client: Client,
    run: str | Run | RunRef,
    *,
    layout: Mapping[str, Any] | None = None,
    rto_seconds: float | None = None,
    require: Sequence[str] = (),
    hosts: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    tiers: Sequence[str] = (),
    local_roots: Sequence[str] = (),
    launch: Launch | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Choice:
    """The newest checkpoint of a run that today's layout can load, at the fastest copy that this host can read whole.

    `run` is an id, project/run, or a run. `require`: pieces that must be there, the optimizer and the data position
    unless said; ("weights",) asks for weights alone. `hosts`: those of this launch; unless said, this one, or unknown
    where a scheduler says that there are several, and then no local copy is taken. `config` is today's, which a counter
    of samples is held against. `tiers`: only copies of these. `launch`: all its hosts get the same. `say` receives
    remarks on the way, such as a copy that is cut short.

    What this host has recorded of the run and the service does not have is sent first, for five seconds at most. Of
    saves that stay behind the newest is taken where it is newer and its own record says that it fits; and the run is
    never said to have none. A `launch`, whose other hosts do not know it, and `rto_seconds` and `config`, which the
    service alone can judge, wait a minute instead, as long as records go out.

    Raises `NothingToResume`; another `CairnError` where the service refuses. Where it cannot be reached, or fails, the
    folder of the last success and `local_roots` are scanned instead, save for a launch of several hosts: without the
    service they could not agree.
    """
    refuse_in_drill("Nothing is chosen to resume from: a drill's command is told by {path} what to load.")
    unknown = [name for name in require if name not in PIECES]
    if unknown:
        raise Invalid(f"{unknown[0]!r} is no piece; expected some of {', '.join(PIECES)}.", code="no-piece")
    pieces = tuple(require) or DEFAULT_PIECES
    host = launch.host if launch is not None else socket.gethostname()
    here = tuple(hosts) or (() if launch is None and runs_on_several_nodes(os.environ) else (host,))
    question = {
        "layout": layout,
        "rto_seconds": rto_seconds,
        "config": config,
        "require": pieces,
        "hosts": here,
    }
    patiently = launch is not None or _is_for_the_service(question)
    left = send_waiting(client, _name_of(client, run), patiently=patiently) if holds_anything() else Left()
    try:
        found = _find(client, run)
        choosing = _FromRegistry(client, found, question, host, tuple(tiers), say)
        if launch is not None:
            choice = agree(client, found, launch, choosing, say, has_news=left.sent > 0)
        else:
            choice = _best(choosing, _unsent(client, found, left, question, tiers))
    except CairnError as fault:
        if left.saves and _says_that_there_is_none(fault):
            raise NothingToResume(f"{fault.detail} But {left.sentence()}") from None
        left.tell(say)
        if not _is_away(fault):
            raise
        if launch is not None:
            raise ConnectionFailed(
                f"{fault.detail} The hosts of one launch can agree only through the registry.", request=fault.request
            ) from fault
        return _without_registry(run, local_roots, Wanted(pieces, dict(layout or {})), fault, say)
    left.tell(say)
    _remember(found, choice, say)
    return choice


def _unsent(client: Client, run: Run, left: Left, question: Mapping[str, Any], tiers: Sequence[str]) -> Unsent | None:
    """None where nothing waits, and where only the service can judge."""
    seen_by_all = tiers if question["hosts"] else [each for each in tiers or TIERS if each != "local"]
    if not left.unsent or _is_for_the_service(question) or (tiers and not seen_by_all):
        return None
    return Unsent(client, run, left, Wanted(question["require"], dict(question["layout"] or {})), seen_by_all)


def _is_for_the_service(question: Mapping[str, Any]) -> bool:
    """How long a restore takes, and whether a counter of samples still counts, nobody else can say."""
    return question["rto_seconds"] is not None or question["config"] is not None


def _best(choosing: "_FromRegistry", unsent: Unsent | None) -> Choice:
    try:
        known = choosing.next_best(frozenset())
    except NothingToResume:
        if unsent is None or (ahead := unsent.beyond(None)) is None:
            raise
        return ahead
    return (unsent.beyond(known) if unsent is not None else None) or known


def runs_on_several_nodes(environ: Mapping[str, str]) -> bool:
    """Whether a scheduler or torchrun says so: then what lies on this host's disk is not what the others see."""
    return any(environ.get(name, "").isdigit() and int(environ[name]) > 1 for name in NODE_COUNTS)


def _is_away(fault: CairnError) -> bool:
    return isinstance(fault, (ConnectionFailed, Unavailable)) or fault.status >= 500


def _says_that_there_is_none(fault: CairnError) -> bool:
    return fault.code in ("run-not-found", "project-not-found") or (
        isinstance(fault, NotFound) and (not (fault.code or fault.status) or getattr(fault, "has_none", False))
    )


def _name_of(client: Client, run: str | Run | RunRef) -> str:
    """project/run, as spools name it; where it cannot be found out, the id."""
    if isinstance(run, Run):
        return f"{run.project}/{run.name}"
    text = run.id if isinstance(run, RunRef) else run
    if "/" in text:
        return text
    if (last := state.last_success(text)) is not None:
        return f"{last.project}/{last.run}"
    with contextlib.suppress(CairnError):
        found = client.get_run(text)
        return f"{found.project}/{found.name}"
    return text


def _find(client: Client, run: str | Run | RunRef) -> Run:
    """Raises `NotFound`, `Invalid`."""
    if isinstance(run, Run):
        return run
    text = run.id if isinstance(run, RunRef) else run
    project, slash, name = text.partition("/")
    return client.find_run(project, name) if slash else client.get_run(text)


@dataclass
class _FromRegistry:
    """What the service proposes, seen from this host. `passed`: what was not taken, in order; `unread`: of that, the
    copies that cannot be used here."""

    client: Client
    run: Run
    question: Mapping[str, Any]
    host: str
    tiers: tuple[str, ...]
    say: Callable[[str], None]
    passed: list[PassedOver] = field(default_factory=list)
    unread: list[PassedOver] = field(default_factory=list)

    def next_best(self, skip: frozenset[str]) -> Choice:
        """Asks for more, below those that cannot be read here, for as long as a launch may look."""
        looked: dict[str, None] = {}
        ends = time.monotonic() + LOOK_SECONDS
        while True:
            plan = self._plan(skip, looked)
            for candidate in plan.candidates:
                looked[candidate.checkpoint.id] = None
                choice = self._readable(candidate.checkpoint, candidate.copies, candidate.notes)
                if choice is not None:
                    behind = {"steps_behind": candidate.steps_behind, "sentence": plan.sentence}
                    return Choice(**{**vars(choice), "details": behind})
            is_all = len(plan.candidates) < CANDIDATES
            if is_all or time.monotonic() > ends or len(skip) + len(looked) > MAX_SKIPPED - CANDIDATES:
                raise self._none_of(plan, len(looked), is_all)

    def _plan(self, skip: frozenset[str], looked: Collection[str]) -> ResumePlan:
        """What the service proposes besides those; what it leaves out by itself is told."""
        plan = self.client.resume_plan(self.run, skip=sorted({*skip, *looked}), limit=CANDIDATES, **self.question)
        for each in plan.excluded:
            if each.checkpoint.id not in looked:
                self._pass_over(PassedOver(str(each.checkpoint), f"{each.filter}: {each.reason}"))
        return plan

    def _none_of(self, plan: ResumePlan, looked: int, is_all: bool) -> NothingToResume:
        passed = tuple(self.passed)
        if looked:
            what = "the checkpoint" if looked == 1 else f"{looked:,} checkpoints"
            older = "" if is_all else "; older ones were not looked at any more"
            first = _in_a_row(self.unread[:SHOWN])
            return NothingToResume(f"No copy of {what} can be read on {self.host}{older}. {first}.", passed_over=passed)
        newest = f" The newest, {str(passed[0]).rstrip('.')}." if passed else ""
        return NothingToResume(f"{plan.sentence}{newest}", passed_over=passed, has_none=not plan.considered)

    def of(self, checkpoint_id: str) -> Choice:
        plan = self.client.restore_plan(
            checkpoint_id,
            layout=self.question["layout"],
            rto_seconds=self.question["rto_seconds"],
            hosts=self.question["hosts"],
        )
        if plan.obstacle:
            raise NothingToResume(plan.sentence, passed_over=tuple(self.passed))
        choice = self._readable(plan.checkpoint, plan.copies, plan.notes)
        if choice is None:
            raise NothingToResume(f"{_in_a_row(self.passed[-SHOWN:])}.", passed_over=tuple(self.passed))
        return choice

    def _readable(self, checkpoint: CheckpointRef, copies: Sequence[CopyOption], notes: Sequence[str]) -> Choice | None:
        for copy in copies:
            fault, path, remark = self._look(copy)
            if fault:
                self.unread.append(PassedOver(f"{checkpoint} on {copy.tier}, {path}", fault))
                self._pass_over(self.unread[-1])
                continue
            reasons = (*notes, *([f"{remark[0].upper()}{remark[1:]}"] if remark else []))
            fallbacks = tuple(self.passed)
            return Choice(path, checkpoint.step, REGISTRY, checkpoint, copy, reasons, fallbacks)
        return None

    def _look(self, copy: CopyOption) -> tuple[str, str, str]:
        """(why it is not taken, path, remark)."""
        if not copy.feasible:
            return copy.reason, copy.uri, ""
        if self.tiers and copy.tier not in self.tiers:
            return f"only copies on {', '.join(self.tiers)} are wanted", copy.uri, ""
        seen = reach(copy, self.host, self.client)
        return seen.fault, seen.path, seen.remark

    def _pass_over(self, what: PassedOver) -> None:
        if what not in self.passed:
            self.passed.append(what)
            self.say(f"Passed over {what}")


def _in_a_row(passed: Sequence[PassedOver]) -> str:
    return "; ".join(str(each).rstrip(".") for each in passed)


def _without_registry(
    run: str | Run | RunRef,
    local_roots: Sequence[str],
    wanted: Wanted,
    fault: CairnError,
    say: Callable[[str], None],
) -> Choice:
    text = run if isinstance(run, str) else (str(run) if isinstance(run, Run) else run.id)
    last = state.last_success(text)
    named = [*local_roots, *([last.root] if last is not None else [])]
    roots = list({os.path.realpath(each): each for each in reversed(named)}.values())[::-1]
    name = f"{last.project}/{last.run}" if last is not None and "/" not in text else text
    why = f"The registry cannot be reached ({fault.detail.rstrip('.')})"
    if roots:
        say(f"The registry is away: looking below {', '.join(roots)} instead.")
    return choose_offline(name, roots, wanted, why)


def _remember(run: Run, choice: Choice, say: Callable[[str], None]) -> None:
    """Where to look the next time, should the registry be away; not worth failing for."""
    if is_url(choice.path):
        return
    try:
        state.keep(state.success_of(run.project, run.name, run.id, choice.path, choice.step))
    except OSError as fault:
        say(f"Where this was found could not be kept for a time without the registry: {fault}")
