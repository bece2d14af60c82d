"""Which run and attempt of the registry a file belongs to.

The run is the one that is linked to this W&B run; else the one of the same name that is linked to no other W&B run: a
run that its training, or MLflow, brought here is one run with it; else a new one. Names repeat within W&B, so where
the name is taken by another W&B run, the id is part of the new name, as with an import from the live service.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from cairn.client import Client
from cairn.errors import NotFound
from cairn.formats.wandb_offline import Facts
from cairn.types import Attempt, Run

KEY_BEGINS = "wandb-"
MAX_NAME = 512
# The library starts a little after or before the training says that it did.
CLOSE_ENOUGH = timedelta(minutes=10)


@dataclass
class Runs:
    """The runs of a project that are linked to W&B, read once."""

    client: Client
    project: str
    _linked: dict[str, Run] | None = field(default=None, repr=False)

    def find(self, facts: Facts) -> Run | None:
        """The run that is linked to this W&B run."""
        if self._linked is None:
            self._linked = {}
            for run in self.client.list_runs(project=self.project):
                for run_id in _wandb_ids(run):
                    self._linked.setdefault(run_id, run)
        return self._linked.get(facts.run_id)

    def place(self, facts: Facts, link: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[Run, str]:
        """The run, made where it is absent and linked in any case, and what should be said of it ('' for nothing)."""
        linked = self.find(facts)
        name, note = (linked.name, "") if linked else self._free_name(facts)
        links = [] if linked else [link]  # the same run of W&B may be linked under another name of its service
        run = self.client.create_run(self.project, name, trackers=links, **described)
        assert self._linked is not None
        self._linked[facts.run_id] = run
        return run, note

    def _free_name(self, facts: Facts) -> tuple[str, str]:
        name = clean_name(facts.name or facts.run_id)
        try:
            there = self.client.find_run(self.project, name)
        except NotFound:
            return name, ""
        if _wandb_ids(there):
            return f"{name[: MAX_NAME - 40]}-{facts.run_id[:32]}", f"another W&B run is called {name!r} here"
        return name, f"joined to the run {name!r}, which was here already"


def clean_name(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:MAX_NAME] or "unnamed"


def _wandb_ids(run: Run) -> list[str]:
    links = [each for each in run.trackers if isinstance(each, Mapping)]
    return [str(each.get("run_id")) for each in links if each.get("kind") == "wandb"]


def attempt_key(facts: Facts, file_name: str) -> str:
    """One folder is one attempt: a run that W&B resumes writes a new folder, under the same id."""
    started = "unknown" if facts.started_at is None else f"{facts.started_at:.6f}"
    return f"{KEY_BEGINS}{facts.run_id or file_name}-{started}"[:MAX_NAME]


def joined_attempt(attempts: tuple[Attempt, ...], started_at: datetime | None) -> Attempt | None:
    """The attempt that the training recorded itself while it wrote this file: the last that began before it did.

    None where there are no attempts but those that imports made.
    """
    own = [each for each in attempts if not (each.key or "").startswith(KEY_BEGINS)]
    if not own:
        return None
    dated = [each for each in own if each.started_at is not None]
    if started_at is None or not dated:
        return own[-1]
    before = [each for each in dated if each.started_at is not None and each.started_at <= started_at + CLOSE_ENOUGH]
    return before[-1] if before else own[0]


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
