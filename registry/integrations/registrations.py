"""What a tracker says of a checkpoint, as a registration here. Pure: nothing is asked or written."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.evals.scores import NewScore
from registry.integrations.apply import Applied
from registry.integrations.fields import code_of, data_of
from registry.integrations.score_names import score_name
from registry.integrations.shapes import TrackerCheckpoint, TrackerRun, TrackerSeries
from registry.types import CheckpointState, Tier

LOSSES: Final = ("loss", "train_loss", "train/loss", "training_loss", "loss_metrics/global_avg_loss")
RATES: Final = ("lr", "learning_rate", "train/learning_rate", "train/lr")
MAX_METRICS: Final = 500  # of a checkpoint
MAX_TEXT: Final = 4_096
MAX_ID: Final = 1_000
Key = tuple[int, int]  # run id and step


@dataclass(frozen=True)
class Found:
    """A run's checkpoints as the tracker has them, and its curves by name where they were read."""

    applied: Applied
    run: TrackerRun
    checkpoints: Sequence[TrackerCheckpoint]
    curves: Mapping[str, TrackerSeries] = field(default_factory=dict)


@dataclass(frozen=True)
class Usable:
    """What can be a checkpoint of its run at a step."""

    found: Found
    step: int
    checkpoint: TrackerCheckpoint

    @property
    def key(self) -> Key:
        return self.found.applied.run_id, self.step

    @property
    def place(self) -> tuple[int, str]:
        """Where it is known by: its link, and its id there."""
        return self.found.applied.link.id, self.checkpoint.external_id[:MAX_ID]


def registration_of(usable: Usable) -> Registration:
    found, step, each = usable.found, usable.step, usable.checkpoint
    curves = found.curves
    return Registration(
        step=step,
        attempt=found.applied.attempt,
        state=CheckpointState.COMMITTED,
        saved_at=each.saved_at,
        epoch=each.epoch,
        loss=_first_at(curves, LOSSES, step),
        lr=_first_at(curves, RATES, step),
        metrics=metrics_of(usable),
        scores=tuple(scores_of(usable)),
        data_version=data_of(found.run),
        code=code_of(found.run),
        replicas=_replicas(each),
        tags=_tags(found, each),
    )


def _replicas(each: TrackerCheckpoint) -> tuple[ReplicaSpec, ...]:
    """The place that the tracker names, unverified: nothing was read there."""
    if not each.uri or len(each.uri) > MAX_TEXT or "\0" in each.uri:
        return ()
    scheme = (
        each.uri.partition(":")[0] if "://" in each.uri or each.uri.startswith(("mlflow-artifacts:", "wandb")) else ""
    )
    tier = Tier.SHARED if scheme in ("", "file") else Tier.OBJECT
    algorithm, _, value = (each.digest or "").rpartition(":")
    known = bool(algorithm and value)
    return (
        ReplicaSpec(
            each.uri,
            tier,
            bytes=each.bytes,
            digest_algorithm=algorithm if known else None,
            digest=value if known else None,
        ),
    )


def _tags(found: Found, each: TrackerCheckpoint) -> dict[str, str]:
    kind = found.run.kind
    tags = {f"{kind}.name": each.name}
    if each.aliases:
        tags[aliases_tag(kind)] = aliases_text(each.aliases)
    if each.digest and ":" not in each.digest:
        tags[f"{kind}.digest"] = each.digest
    for name, value in each.metadata.items():
        if isinstance(value, str | int | float | bool) and not name.startswith("cairn"):
            tags.setdefault(f"{kind}.{name}", str(value))
    return {
        name: value.replace("\0", " ")
        for name, value in list(tags.items())[:100]
        if len(name) <= 200 and name.isprintable() and len(value) <= MAX_TEXT
    }


def aliases_tag(kind: str) -> str:
    return f"{kind}.aliases"


def aliases_text(aliases: Sequence[str]) -> str:
    return ", ".join(aliases)[:MAX_TEXT].replace("\0", " ")


def scores_of(usable: Usable) -> Iterator[NewScore]:
    """Benchmark scores that the tracker ties to the checkpoint, and those that the run logged at its step."""
    seen = set()
    for score in usable.checkpoint.scores:
        name = score_name(score.name)
        if name is not None:
            seen.add(name)
            yield NewScore(name.benchmark, score.value, name.metric, name.filter, evaluated_at=score.at)
    for key, value in _logged_at(usable):
        name = score_name(key)
        if name is not None and name not in seen:
            seen.add(name)
            yield NewScore(name.benchmark, value, name.metric, name.filter)


def metrics_of(usable: Usable) -> dict[str, float]:
    """What is no benchmark score, of the model and of the run at its step."""
    metrics = {score.name: score.value for score in usable.checkpoint.scores if score_name(score.name) is None}
    for key, value in _logged_at(usable):
        if key not in (*LOSSES, *RATES) and score_name(key) is None:
            metrics.setdefault(key, value)
    kept = [(name, value) for name, value in metrics.items() if 0 < len(name) <= 512 and name.isprintable()]
    return dict(kept[:MAX_METRICS])


def _logged_at(usable: Usable) -> Iterator[tuple[str, float]]:
    for key, curve in usable.found.curves.items():
        value = _at(curve, usable.step)
        if value is not None:
            yield key, value


def _first_at(curves: Mapping[str, TrackerSeries], names: Sequence[str], step: int) -> float | None:
    for name in names:
        value = _at(curves[name], step) if name in curves else None
        if value is not None:
            return value
    return None


def _at(curve: TrackerSeries, step: int) -> float | None:
    at = bisect_left(curve.steps, step)
    return curve.values[at] if at < len(curve.steps) and curve.steps[at] == step else None
