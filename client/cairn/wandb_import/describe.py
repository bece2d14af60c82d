"""Runs, attempts and checkpoints of a file in the words of the API, without secrets."""

import math
import os
from typing import Any

from cairn.capture.secrets import mask
from cairn.capture.trackers import WANDB_NAMES
from cairn.formats.wandb_offline import Facts
from cairn.formats.wandb_offline.words import EPOCHS, LOSSES, RATES, TOKENS, artifact_tags, first_of, is_name, tags_of
from cairn.types import Attempt, Run
from cairn.wandb_import.gather import Gathered, Saved
from cairn.wandb_import.place import moment
from cairn.wandb_import.scores import score_name

WANDB_URL = "https://api.wandb.ai"
MAX_METRICS = 500


def project_name(text: str) -> str:
    """W&B's project as the registry can call one."""
    allowed = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return allowed[:128].strip(".") or "wandb"


def link(facts: Facts, base_url: str | None) -> dict[str, str]:
    url = (base_url or os.environ.get("WANDB_BASE_URL") or WANDB_URL).rstrip("/")
    url = WANDB_NAMES.get(url, url)
    said = {"kind": "wandb", "uri": url, "entity": facts.entity, "project": facts.project, "run_id": facts.run_id}
    return {name: value for name, value in said.items() if value}


def described(facts: Facts) -> dict[str, Any]:
    tags = tags_of(facts.tags, group=facts.group, job_type=facts.job_type, notes=facts.notes)
    said = {
        "config": mask(facts.config),
        "tags": mask(tags),
        "owner": facts.user,
        "started_at": moment(facts.started_at),
    }
    return {name: value for name, value in said.items() if value}


def origin(before: Attempt, found: Gathered) -> dict[str, Any]:
    """What a later attempt loaded nobody wrote down; where it goes on, the step before its first one is assumed."""
    first = found.first_step or 0
    if first <= 1:
        return {"restart": True, "reason": "its steps begin anew"}
    source = {"attempt": before.number, "step": first - 1}
    reason = f"an import from W&B; what it loaded is assumed from its first step, {first}"
    return {"resumed_from": source, "reason": reason}


def environment(facts: Facts) -> dict[str, Any]:
    return {**facts.environment, **({"wandb": facts.version} if facts.version else {})}


def registration(
    run: Run, attempt: Attempt, found: Gathered, saved: Saved, tier: str, benchmarks: frozenset[str]
) -> dict[str, Any]:
    facts = found.facts
    fielded = {*LOSSES, *RATES, *TOKENS, *EPOCHS}
    others = [(name, value) for name, value in saved.values.items() if name not in fielded and is_name(name)]
    metrics = [(name, value) for name, value in others if score_name(name, benchmarks) is None]
    item: dict[str, Any] = {
        "project": run.project,
        "run": run.name,
        "attempt": attempt.number,
        "step": saved.step,
        "saved_at": moment(saved.at or facts.started_at),
        "loss": first_of(saved.values, LOSSES),
        "lr": first_of(saved.values, RATES),
        "epoch": _fraction(first_of(saved.values, EPOCHS)),
        "tokens_seen": _whole(first_of(saved.values, TOKENS)),
        "metrics": dict(metrics[:MAX_METRICS]),
        "scores": scores_at(saved, benchmarks),
        "tags": {
            **mask(artifact_tags(saved.name, saved.aliases, saved.digest, saved.metadata)),
            "step_from": f"W&B artifact, {saved.step_source}"[:500],
            **({} if saved.at_is_exact else {"saved_at_from": "the last row logged before it"}),
        },
        "replicas": _replicas(saved, facts, tier),
    }
    if facts.commit:
        item["code"] = {"commit": facts.commit[:200], **({"remote": mask(facts.remote)} if facts.remote else {})}
    return {name: value for name, value in item.items() if value not in (None, {}, [])}


def scores_at(saved: Saved, benchmarks: frozenset[str]) -> list[dict[str, Any]]:
    """The benchmark scores that the history says at the step of a checkpoint."""
    named = ((score_name(name, benchmarks), value) for name, value in saved.values.items() if is_name(name))
    return [{**score, "value": value} for score, value in named if score is not None][:MAX_METRICS]


def _fraction(value: float | None) -> float | None:
    return value if value is not None and 0 <= value < math.inf else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and 0 <= value < 2**63 else None


def _replicas(saved: Saved, facts: Facts, tier: str) -> list[dict[str, Any]]:
    if saved.place is None or "\0" in saved.place or len(saved.place) > 4_096:
        return []
    copy: dict[str, Any] = {"uri": mask(saved.place), "tier": "object" if "://" in saved.place else tier}
    if copy["tier"] == "local" and facts.host:
        copy["host"] = facts.host
    if saved.bytes:
        copy |= {"bytes": saved.bytes, "file_count": saved.file_count}
    return [copy]
