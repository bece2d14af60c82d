"""The ids of what the checkpoints of a batch share, found or made for all of them at once."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from registry import snapshots
from registry.checkpoints.placing import Item


class SharedColumns:
    """A checkpoint without a config of its own has its attempt's, else its run's; likewise environment and layout."""

    def __init__(self, session: Session, project_id: int, items: Sequence[Item]) -> None:
        given = [item.registration for item in items]
        self._attempts = [item.attempt for item in items]
        self._config = snapshots.keep_configs(session, project_id, [each.config for each in given])
        self._environment = snapshots.keep_environments(session, project_id, [each.environment for each in given])
        self._layout = snapshots.keep_layouts(session, project_id, [each.layout for each in given])
        self._code = snapshots.keep_code_versions(session, project_id, [each.code for each in given])
        self._data = snapshots.keep_data_versions(session, project_id, [each.data_version for each in given])

    def of(self, at: int) -> dict[str, int | None]:
        """The columns of the item at a place."""
        attempt = self._attempts[at]
        return {
            "config_id": self._config[at] or attempt.config_id,
            "environment_id": self._environment[at] or attempt.environment_id,
            "layout_id": self._layout[at] or attempt.layout_id,
            "code_version_id": self._code[at],
            "data_version_id": self._data[at],
        }
