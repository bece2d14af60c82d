"""Telling W&B of checkpoints: tags name the newest, the best and the aliased ones, the summary holds the details.

Everything of ours begins with `cairn/`. A change names the fields that it sets: a run's config is never sent. Both
fields are lists that W&B only takes whole, so they are read just before they are set. While a run is alive its own
process keeps sending the whole summary, which would wipe out ours: details are told once it has ended, and tags at any
time (a training tells them itself with `cairn.wandb_artifacts`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from registry.integrations.open import Place
from registry.integrations.shapes import CheckpointPush, RunPush, TrackerUnreachable
from registry.integrations.wandb_api import WandbApi
from registry.integrations.wandb_words import OURS, check_names
from registry.strict_json import special_name

MAX_TOLD: Final = 100  # checkpoints in one run's summary: the newest, and those that an alias points at
MAX_NAMED: Final = 5  # checkpoints of a verdict that are named in tags
VERDICTS: Final = ("suspect", "deleted")  # that tags name
MAX_TAG: Final = 64  # characters; W&B refuses longer ones
ALIVE: Final = ("running", "pending", "preempting")
_ENTRY: Final = f"{OURS}checkpoint-"
_STEP: Final = re.compile(r"step (\d+), attempt (\d+)")


class WandbWriter:
    """A `TrackerWriter`."""

    def __init__(self, api: WandbApi, place: Place) -> None:
        self._api, self._place = api, place

    def push_checkpoints(self, run_id: str, checkpoints: Sequence[CheckpointPush]) -> Iterator[tuple[str, str | None]]:
        """Details of checkpoints. Those of a run that is alive there are not given back: they stay due."""
        run = self._api.run(self._path(run_id))
        self._set_tags(run, _with_verdicts(run.tags or (), checkpoints))
        if run.state in ALIVE:
            return
        entries = dict(_mapping(run.summary_metrics))
        wanted = told_entries(entries, checkpoints)
        if wanted != entries:
            stored = self._api.amend(run, {"summaryMetrics": _as_json(wanted)})
            self._check(_mapping(stored.get("summaryMetrics")), wanted)
        for push in checkpoints:
            yield push.checkpoint_id, f"{run_id}/{push.name}"

    def push_run(self, run_id: str, push: RunPush) -> None:
        run = self._api.run(self._path(run_id))
        self._set_tags(run, told_tags(run.tags or (), push.values))

    def _path(self, run_id: str) -> str:
        entity, project = self._place.entity or self._api.viewer.get("entity"), self._place.project
        check_names(str(entity or ""), project or "", run_id)
        return f"{entity}/{project}/{run_id}"

    def _set_tags(self, run: Any, wanted: Sequence[str]) -> None:
        if sorted(run.tags or ()) == sorted(wanted):
            return
        stored = self._api.amend(run, {"tags": list(wanted)})
        if sorted(stored.get("tags") or ()) != sorted(wanted):
            raise TrackerUnreachable(f"W&B did not keep the tags of {run.id}. It is tried again.")
        run._attrs["tags"] = list(wanted)

    def _check(self, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """W&B answers with what it keeps: an answer alone does not say that it is what was sent."""
        if any(stored.get(name) != value for name, value in wanted.items() if name.startswith(_ENTRY)):
            raise TrackerUnreachable("W&B did not keep what it was told of checkpoints. It is tried again.")


def told_tags(tags: Sequence[str], values: Mapping[str, str | None]) -> list[str]:
    """The tags with ours among them: `cairn/production:step-100`, or `…@2` for a later attempt."""
    kept = [tag for tag in tags if not any(tag.startswith(f"{OURS}{key}:") for key in values)]
    for key, line in sorted(values.items()):
        if line is None:
            continue
        said = _STEP.match(line)
        which = "" if said is None else f"step-{said[1]}" + (f"@{said[2]}" if said[2] != "1" else "")
        kept.append(f"{OURS}{key}:{which}"[:MAX_TAG])
    return kept


def _with_verdicts(tags: Sequence[str], checkpoints: Sequence[CheckpointPush]) -> list[str]:
    """The tags that name suspect and deleted checkpoints, with those of this push as they are now."""
    kept = list(tags)
    for verdict in VERDICTS:
        before = f"{OURS}{verdict}:"
        named = {f"{before}{push.name}"[:MAX_TAG]: push.verdict == verdict for push in checkpoints}
        kept = [tag for tag in kept if tag not in named]
        room = MAX_NAMED - sum(tag.startswith(before) for tag in kept)
        kept += [tag for tag, is_so in named.items() if is_so][: max(room, 0)]
    return kept


def told_entries(summary: Mapping[str, Any], checkpoints: Sequence[CheckpointPush]) -> dict[str, Any]:
    """The summary with an entry for each of these; beyond MAX_TOLD the oldest without an alias go."""
    entries = dict(summary) | {f"{OURS}{push.name}": entry_of(push) for push in checkpoints}
    ours = [name for name, entry in entries.items() if name.startswith(_ENTRY) and isinstance(entry, Mapping)]
    ours.sort(key=lambda name: _importance(entries[name]), reverse=True)
    for name in ours[MAX_TOLD:]:
        del entries[name]
    return entries


def _importance(entry: Mapping[str, Any]) -> tuple[bool, int, int]:
    return bool(entry.get("aliases")), _whole(entry.get("attempt")), _whole(entry.get("step"))


def entry_of(push: CheckpointPush) -> dict[str, Any]:
    """Everything that is said of a checkpoint; what is unknown is left out, numbers that are not finite are words."""
    said: dict[str, Any] = {
        **push.facts(),
        "aliases": list(push.aliases) or None,
        "loss": _number(push.loss),
        "scores": {name: _number(value) for name, value in sorted(push.scores.items())} or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _number(value: float | None) -> float | str | None:
    return value if value is None or value - value == 0 else special_name(value)


def _as_json(summary: Mapping[str, Any]) -> str:
    """Numbers of the run's own that are not finite go back as the words that W&B uses for them."""
    return json.dumps(_plain(summary), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _number(value) if isinstance(value, float) else value


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}
