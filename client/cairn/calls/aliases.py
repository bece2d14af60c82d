"""Names that point at checkpoints, such as `production`."""

from cairn.calls.base import Calls, CheckpointLike, given, id_of, segment
from cairn.reading import build
from cairn.types import Alias, AliasMove


class AliasCalls(Calls):
    """Moves are atomic and kept. None of the changing calls is repeated by itself: a move counts once."""

    def get_alias(self, project: str, name: str) -> Alias:
        return self._get(Alias, _path(project, name))

    def put_alias(
        self,
        project: str,
        name: str,
        checkpoint: CheckpointLike,
        *,
        reason: str | None = None,
        expected: CheckpointLike | None = None,
        force: bool | None = None,
    ) -> Alias:
        """Points the alias at a committed checkpoint; with `expected`, only if it points there now.

        Raises `Conflict` where it points elsewhere, and where the checkpoint is suspect, unless `force` and a
        `reason` are given.
        """
        body = given(
            checkpoint_id=id_of(checkpoint),
            reason=reason,
            expected=None if expected is None else id_of(expected),
            force=force,
        )
        return build(Alias, self._send("PUT", _path(project, name), body, idempotent=False))

    def list_aliases(self) -> tuple[Alias, ...]:
        """Every alias that this token may see, by name."""
        return self._every("/aliases", Alias)

    def alias_history(self, project: str, name: str) -> tuple[AliasMove, ...]:
        """Every move, the newest first."""
        return self._every(f"{_path(project, name)}/history", AliasMove)

    def alias_rollback(
        self,
        project: str,
        name: str,
        *,
        reason: str | None = None,
        expected: CheckpointLike | None = None,
        force: bool | None = None,
    ) -> Alias:
        """Points the alias back at what it pointed at before; once more, one step further back in its history.

        `expected` and `force` as for `put_alias`, which also undoes a rollback.
        """
        body = given(reason=reason, expected=None if expected is None else id_of(expected), force=force)
        path = f"{_path(project, name)}/rollback"
        return build(Alias, self._send("POST", path, body, idempotent=False))


def _path(project: str, name: str) -> str:
    return f"/aliases/{segment(project)}/{segment(name)}"
