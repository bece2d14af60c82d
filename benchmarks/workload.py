"""Deterministic checkpoints for the benchmarks: 10 params, 20 metrics, 6 tags each, 100 checkpoints a run."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

METRICS = (
    *("gsm8k", "math", "mmlu", "mt_bench", "arena_hard", "humaneval", "mbpp", "hellaswag", "arc_c", "winogrande"),
    *("truthfulqa", "bbh", "ifeval", "drop", "triviaqa", "nq", "piqa", "boolq", "val_loss", "train_loss"),
)
START = datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
CHECKPOINTS_PER_RUN = 100
PROJECT = "bench"


def run_name(index: int) -> str:
    return f"run-{index // CHECKPOINTS_PER_RUN:05d}"


def saved_at(index: int) -> str:
    """Checkpoint `index` is saved `index` minutes after the start."""
    return (START + timedelta(minutes=index)).isoformat().replace("+00:00", "Z")


def scores(index: int) -> dict[str, float]:
    """Uniform in [0, 1), mt_bench in [1, 10), losses in [1.5, 3.5)."""
    chance = random.Random(index * 7919 + 13)
    values = {}
    for metric in METRICS:
        share = chance.random()
        scaled = 1 + 9 * share if metric == "mt_bench" else 1.5 + 2 * share if metric.endswith("loss") else share
        values[metric] = round(scaled, 5 if metric.endswith("loss") else 4)
    return values


def config(index: int) -> dict[str, Any]:
    run = index // CHECKPOINTS_PER_RUN
    return {
        "lr": 3e-4 / (1 + run % 7),
        "batch_size": 256 * (1 + run % 4),
        "seq_len": 4096,
        "optimizer": "adamw",
        "warmup": 2000,
        "weight_decay": 0.1,
        "layers": 24 + run % 3 * 8,
        "d_model": 4096,
        "tokenizer": f"bpe-v{run % 5}",
        "seed": run,
    }


def tags(index: int) -> dict[str, str]:
    run = index // CHECKPOINTS_PER_RUN
    return {
        "storage_path": f"s3://ckpts/team-{run % 8}/run-{run:05d}/step-{step(index):08d}/",
        "git_commit": f"{random.Random(run).getrandbits(160):040x}",
        "data_version": f"mix-v{run % 17}",
        "host": f"node-{run % 32}",
        "wandb_url": f"https://wandb.example/org/proj/runs/{run:08x}",
        "phase": ("pretrain", "sft", "dpo")[run % 3],
    }


def step(index: int) -> int:
    return (index % CHECKPOINTS_PER_RUN + 1) * 500


def checkpoint(index: int) -> dict[str, Any]:
    """The body of a registration."""
    return {
        "step": step(index),
        "saved_at": saved_at(index),
        "config": config(index),
        "scores": scores(index),
        "tags": tags(index),
    }


def batch_item(index: int) -> dict[str, Any]:
    return {"project": PROJECT, "run": run_name(index), **checkpoint(index)}


def queries(count: int) -> dict[str, dict[str, str]]:
    """Name to the parameters of GET /checkpoints. Shares of a uniform population: 13 %, 2 %, 3 %, all."""
    since, until = saved_at(count // 2), saved_at(count * 6 // 10)
    return {
        "math_not_chat": {
            "filter": "scores.gsm8k > 0.6 and scores.mt_bench < 4",
            "order_by": "scores.gsm8k desc",
        },
        "four_metrics": {
            "filter": "scores.gsm8k > 0.6 and scores.math > 0.6 and scores.mt_bench < 4 and scores.arena_hard < 0.4",
            "order_by": "scores.math desc",
        },
        "rollback": {
            "filter": f"scores.mmlu > 0.7 and saved_at >= '{since}' and saved_at < '{until}'",
            "order_by": "saved_at desc",
        },
        "newest": {},
    }
