"""Aliases: names such as production that point at one committed checkpoint, with their history.

A move is atomic, may demand what the alias pointed at before (compare and set), and is never forgotten: rolling back
is one more move. Rolling back twice goes two steps back in the history, not back and forth: who is woken at night and
finds the version before bad as well wants the one before that. To undo a rollback, point the alias forward again.
"""

from registry.aliases.errors import (
    AliasMoved,
    AliasNotFound,
    BadAliasName,
    ForceWithoutReason,
    NotCommitted,
    NothingToRollBackTo,
    SuspectTarget,
)
from registry.aliases.fitness import QUARANTINE_TAGS
from registry.aliases.last import not_the_last
from registry.aliases.moving import move_alias, roll_back_alias
from registry.aliases.reading import (
    AliasRow,
    Move,
    alias_history,
    get_alias,
    get_alias_id,
    list_aliases,
    rollback_target,
)

__all__ = [
    "QUARANTINE_TAGS",
    "AliasMoved",
    "AliasNotFound",
    "AliasRow",
    "BadAliasName",
    "ForceWithoutReason",
    "Move",
    "NotCommitted",
    "NothingToRollBackTo",
    "SuspectTarget",
    "alias_history",
    "get_alias",
    "get_alias_id",
    "list_aliases",
    "move_alias",
    "not_the_last",
    "roll_back_alias",
    "rollback_target",
]
