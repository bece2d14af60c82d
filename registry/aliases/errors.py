"""What can be wrong with an alias, and what to do about it."""

from registry.errors import Conflict, Invalid, NotFound
from registry.ids import to_text
from registry.models import Alias


class AliasNotFound(NotFound):
    code = "alias-not-found"
    title = "No such alias"


class BadAliasName(Invalid):
    code = "bad-alias-name"
    title = "Not a name for an alias"


class AliasMoved(Conflict):
    code = "alias-moved"
    title = "The alias points elsewhere by now"


class NotCommitted(Conflict):
    code = "alias-target-not-committed"
    title = "An alias can only name a committed checkpoint"


class NothingToRollBackTo(Conflict):
    code = "nothing-to-roll-back-to"
    title = "There is nothing earlier in the alias's history"


class SuspectTarget(Conflict):
    code = "alias-target-suspect"
    title = "The checkpoint is suspect"


class ForceWithoutReason(Invalid):
    code = "force-without-reason"
    title = "Who overrides a suspicion says why"


def moved_meanwhile(alias: Alias, expected: int) -> AliasMoved:
    return AliasMoved(
        f"Alias {alias.name!r} points at {to_text(alias.checkpoint_id)}, not at {to_text(expected)}. "
        "Read it again, and decide again.",
        current=to_text(alias.checkpoint_id),
    )


def no_alias(name: str) -> AliasNotFound:
    return AliasNotFound(f"There is no alias {name[:128]!r} in this project. PUT makes one.")
