"""The same checkpoint on every host of a launch: proposed by the first, taken once all can read it."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from cairn.client import Client
from cairn.errors import CairnError, Conflict, ConnectionFailed, Unavailable
from cairn.resume.shapes import Choice, Launch, NothingToResume
from cairn.types import ResumeAgreement, Run

MAX_ROUNDS = 50
MAX_REASON = 1_000  # characters


class Choosing(Protocol):
    """How this host finds what it can read. Both raise `NothingToResume`."""

    def next_best(self, skip: frozenset[str]) -> Choice:
        """The best of all but those checkpoints (ids)."""

    def of(self, checkpoint_id: str) -> Choice:
        """A copy of this very checkpoint."""


def agree(
    client: Client,
    run: Run,
    launch: Launch,
    choosing: Choosing,
    say: Callable[[str], None],
    *,
    has_news: bool = False,
) -> Choice:
    """What all hosts load, when all of them can. `has_news`: this host has just told the service of saves that whoever
    proposed before could not know. Raises `NothingToResume` where they find none, or not in time."""
    talk = _Talk(client, run, launch, choosing, say, time.monotonic() + launch.wait_seconds)
    own = talk.own_best(frozenset())
    answer = talk.vote(own)
    if has_news and _is_better(own, answer):
        say(f"{answer.checkpoint} was proposed before {own.checkpoint} was known.")
        answer = talk.vote(own, answer.checkpoint.id)
    for _ in range(MAX_ROUNDS):
        answer = talk.wait(own, answer)
        if answer.all_ready and _same(own, answer):
            return replace(own, agreed_by=answer.ready)
        own, answer = talk.follow(answer)
    raise NothingToResume(f"The hosts of launch {launch.key} did not agree in {MAX_ROUNDS} rounds.")


def _is_better(own: Choice, answer: ResumeAgreement) -> bool:
    """Whether the own one is newer, nobody has found it unreadable, and it lies where all hosts can look."""
    here, there = own.checkpoint, answer.checkpoint
    if here is None or own.replica is None or answer.all_ready or answer.failed or here.id in answer.refused:
        return False
    newer = (here.attempt or 0, here.step or 0) > (there.attempt or 0, there.step or 0)
    return newer and own.replica.tier != "local"


def _same(own: Choice, answer: ResumeAgreement) -> bool:
    return own.checkpoint is not None and own.checkpoint.id == answer.checkpoint.id


@dataclass(frozen=True)
class _Talk:
    """One host among those of a launch. `deadline` is of the monotonic clock."""

    client: Client
    run: Run
    launch: Launch
    choosing: Choosing
    say: Callable[[str], None]
    deadline: float

    def own_best(self, skip: frozenset[str], reason: str | None = None) -> Choice:
        """Where this host has none, the others are told, so that nobody waits for it."""
        try:
            return self.choosing.next_best(skip)
        except NothingToResume as fault:
            with contextlib.suppress(CairnError):  # where nothing was proposed yet, there is nothing to end
                self._send(None, None, (reason or fault.detail)[:MAX_REASON])
            raise

    def follow(self, answer: ResumeAgreement) -> tuple[Choice, ResumeAgreement]:
        """What the others propose where this host can read it, else another proposal."""
        proposed = answer.checkpoint
        try:
            own = self.choosing.of(proposed.id)
        except NothingToResume as fault:
            if answer.all_ready:
                raise NothingToResume(
                    f"Launch {self.launch.key} agreed on {proposed}, which cannot be read here any more: "
                    f"{fault.detail} A new launch needs a key of its own."
                ) from None
            self.say(f"{proposed}, which another host proposed, cannot be read here: {fault.detail}")
            own = self.own_best(frozenset({proposed.id, *answer.refused}), fault.detail)
            return own, self.vote(own, proposed.id)
        return own, self.vote(own)

    def vote(self, own: Choice, instead_of: str | None = None) -> ResumeAgreement:
        """The service's answer; while it cannot be reached, asked again until the deadline."""
        while True:
            try:
                return self._send(own, instead_of, None)
            except (ConnectionFailed, Unavailable):
                if not self._pause():
                    raise
            except Conflict as fault:
                raise NothingToResume(f"The hosts of launch {self.launch.key} cannot agree: {fault.detail}") from None

    def wait(self, own: Choice, answer: ResumeAgreement) -> ResumeAgreement:
        """Until all are ready, or another is proposed. Raises `NothingToResume` when it fails or takes too long."""
        launch, told = self.launch, 0
        while not answer.failed and not answer.all_ready and _same(own, answer):
            if len(answer.ready) != told:
                told = len(answer.ready)
                self.say(f"{told} of {answer.hosts} hosts can read {answer.checkpoint}; waiting for the others.")
            if not self._pause():
                raise NothingToResume(
                    f"After {launch.wait_seconds:g} s only {told} of {answer.hosts} hosts of launch {launch.key} are "
                    f"ready ({', '.join(answer.ready[:10])}). Is the number of hosts right, and do all of them ask?"
                )
            answer = self.vote(own)
        if answer.failed:
            raise NothingToResume(f"Launch {launch.key} cannot go on: {answer.failed}.")
        return answer

    def _pause(self) -> bool:
        """Whether there is time for another question."""
        if time.monotonic() + self.launch.poll_seconds > self.deadline:
            return False
        time.sleep(self.launch.poll_seconds)
        return True

    def _send(self, own: Choice | None, instead_of: str | None, reason: str | None) -> ResumeAgreement:
        launch = self.launch
        return self.client.agree_to_resume(
            self.run,
            key=launch.key,
            host=launch.host,
            hosts=launch.hosts,
            checkpoint=own.checkpoint if own is not None else None,
            instead_of=instead_of,
            reason=reason,
        )
