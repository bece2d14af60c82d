"""What MLflow's model registry says of a run's models: under which names and aliases they are known there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cairn.formats.checkpoints.steps import step_from_name

from registry.integrations.mlflow_api import Doc, MlflowSource
from registry.integrations.mlflow_words import OWN, moment
from registry.integrations.shapes import TrackerCheckpoint
from registry.trackers.links import clean_uri


@dataclass(frozen=True)
class Version:
    """A version of a registered model. `aliases` as MLflow writes them: `name@champion`."""

    run_id: str
    name: str
    number: str
    source: str
    aliases: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    made_at: datetime | None = None

    @property
    def step(self) -> int | None:
        """The step that a tag says, or an alias such as `step-500`."""
        said = self.tags.get("step", "")
        if said.isdigit() and len(said) < 19:
            return int(said)
        named = (step_from_name(alias.rpartition("@")[2]) for alias in self.aliases)
        return next((step for step in named if step is not None), None)

    def is_of(self, model_id: str, uri: str | None) -> bool:
        """Whether it is this model, or what lies at this address."""
        return self.source in (f"models:/{model_id}", uri)

    def as_checkpoint(self) -> TrackerCheckpoint:
        """Itself a checkpoint, where it was registered from something that is neither model nor folder of its run."""
        folder = self.source.rstrip("/").rpartition("/")[2]
        return TrackerCheckpoint(
            external_id=f"models:/{self.name}/{self.number}",
            name=f"{self.name}/{self.number}",
            step=self.step if self.step is not None else step_from_name(folder),
            uri=clean_uri(self.source) or None,
            aliases=self.aliases,
            metadata=self.tags,
            saved_at=self.made_at,
        )


class ModelRegistry:
    """Aliases stand with the registered model, not with its versions: they are read once, for all."""

    def __init__(self, api: MlflowSource) -> None:
        self._api = api
        self._aliases: dict[tuple[str, str], list[str]] | None = None

    def versions(self, run_ids: Sequence[str]) -> dict[str, list[Version]]:
        """The versions that came out of these runs, by run; the oldest first."""
        found: dict[str, list[Version]] = {}
        for doc in self._api.model_versions(run_ids):
            found.setdefault(str(doc.get("run_id")), []).append(self._version(doc))
        return {run_id: sorted(of_run, key=lambda each: each.number) for run_id, of_run in found.items()}

    def _version(self, doc: Doc) -> Version:
        name, number = str(doc.get("name", "")), str(doc.get("version", ""))
        return Version(
            run_id=str(doc.get("run_id")),
            name=name,
            number=number,
            source=str(doc.get("source", "")),
            aliases=tuple(sorted(f"{name}@{alias}" for alias in self._aliases_of(name, number))),
            tags={key: value for key, value in _tags(doc) if not key.startswith(("mlflow.", OWN))},
            made_at=moment(doc.get("creation_timestamp")),
        )

    def _aliases_of(self, name: str, number: str) -> list[str]:
        if self._aliases is None:
            self._aliases = {}
            for model in self._api.registered_models():
                for each in model.get("aliases", ()):
                    key = str(model.get("name")), str(each.get("version"))
                    self._aliases.setdefault(key, []).append(str(each.get("alias")))
        return self._aliases.get((name, number), [])


def _tags(doc: Doc) -> Iterator[tuple[str, str]]:
    for tag in doc.get("tags", ()):
        yield str(tag.get("key", "")), str(tag.get("value", ""))
