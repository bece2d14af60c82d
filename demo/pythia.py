"""Registrations of the Pythia models: ten zero-shot series, and the data interventions with their baselines."""

from collections.abc import Iterator
from functools import cache

from demo.reading import Body, Row, nested, read_table

PROJECT = "pythia"
REMOTE = "https://github.com/EleutherAI/pythia"
METRICS = ("acc", "acc_norm", "ppl", "likelihood_difference", "pct_stereotype")
PILE = {"standard": "pile", "deduped": "pile-deduped"}
DATA_PATHS = ("train_data_paths", "valid_data_paths", "test_data_paths")


def runs() -> Iterator[Body]:
    """A body for each run; those that others went on from come first."""
    for row in run_rows():
        yield {
            "project": PROJECT,
            "name": row["run"],
            "kind": "pretrain",
            "team": "EleutherAI",
            "model_family": "pythia",
            "parameter_count": int(row["parameter_count"]),
            "config": config(row),
            "tags": tags(row),
        }


def attempts() -> Iterator[tuple[str, str, Body]]:
    """The one attempt of each run: how many GPUs it had, and for an intervention what it went on from."""
    for row in run_rows():
        body: Body = {"key": "published", "layout": layout(row)}
        if row["parent"]:
            body["reason"] = "data intervention"
            body["resumed_from"] = {
                "run": row["parent"],
                "attempt": 1,
                "step": int(row["parent_step"]),
                "kind": "archive",
            }
        yield PROJECT, row["run"], body


def checkpoints() -> Iterator[Body]:
    """Every evaluated checkpoint with its zero-shot scores."""
    for run in run_rows():
        by_step: dict[int, list[Row]] = {}
        for row in read_table(f"pythia/scores/{run['run']}"):
            by_step.setdefault(int(row["step"]), []).append(row)
        for step, rows in by_step.items():
            yield {
                "project": PROJECT,
                "run": run["run"],
                "step": step,
                "attempt": 1,
                "tokens_seen": step * int(run["tokens_per_step"]),
                "data_version": data_version(run),
                "code": {"remote": REMOTE},
                "pieces": {"weights": {"state": "present", "evidence": "published on the hub"}},
                "replicas": [{"uri": f"hf://EleutherAI/{run['hub']}@step{step}", "tier": "object"}],
                "scores": [score for row in rows for score in scores(row)],
            }


@cache
def run_rows() -> list[Row]:
    rows = read_table("pythia/runs")
    return [row for row in rows if not row["parent"]] + [row for row in rows if row["parent"]]


@cache
def configs() -> dict[str, dict[str, str]]:
    """Config name to its options, as cells of JSON by dotted name."""
    rows = read_table("pythia/configs")
    return {name: {row["option"]: row[name] for row in rows} for name in rows[0] if name != "option"}


def config(run: Row) -> Body:
    """The published config, without what is known not to have held for this run."""
    facts = nested(configs()[run["config"]])
    if run["run"].endswith("-bf16"):
        del facts["fp16"]  # the file says fp16, the published series bfloat16
    if run["parent"]:
        for name in DATA_PATHS:
            del facts[name]  # an intervention read other data; the file it read is not named
    return facts


def layout(run: Row) -> Body:
    facts = configs()[run["config"]]
    gpus, tp = int(run["gpus"]), int(facts["model_parallel_size"])
    pp = max(1, int(facts["pipe_parallel_size"]))
    sharding = f"zero-{facts['zero_optimization.stage']}"
    return {"world_size": gpus, "tp": tp, "pp": pp, "dp": gpus // (tp * pp), "sharding": sharding}


def data_version(run: Row) -> Body:
    """The Pile as it was, or without duplicates; an intervention swapped its gendered pronouns."""
    name = PILE[run["data_version"]]
    if run["parent"]:
        name += ", pronouns swapped"
    version = f"{PILE[run['data_version']]}-{run['variant']}" if run["parent"] else name
    return {"name": version, "mix": {name: 1.0}}


def tags(run: Row) -> dict[str, str]:
    found = {"suite": "pythia", "generation": "v1", "role": run["variant"] or "model"}
    if run["variant"] == "baseline":
        found["same_training_as"] = run["series"]  # more of its steps, evaluated beside the intervention
    if run["run"].endswith("-bf16"):
        found["precision"] = "bf16"
    return found


def scores(row: Row) -> Iterator[Body]:
    for metric in METRICS:
        if row[metric]:
            yield {
                "benchmark": row["task"],
                "metric": metric,
                "value": float(row[metric]),
                "stderr": float(row[f"{metric}_stderr"]),
                "n_shot": 0,
                "version": row["version"],
                "harness": "lm-evaluation-harness",
            }
