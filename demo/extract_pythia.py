"""Tables of the Pythia models: runs, their training configs, and one table of zero-shot scores for each run."""

import csv
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from demo.pythia import METRICS
from demo.reading import Row

# The tokenizer's 50,254 words, padded by GPT-NeoX to a multiple of 128 times the model-parallel size.
PADDED_VOCABULARY = {1: 50_304, 2: 50_432}
# A path says where one cluster kept a file; what the file is called says which data it was.
PATHS = ("train_data_paths", "valid_data_paths", "test_data_paths", "vocab_file")


def tables(source: Path) -> Iterator[tuple[str, list[Row]]]:
    """Name and rows of every table. `source` holds `pythia-v1`, `configs` and `models.csv`."""
    configs = {path.stem: read_config(path) for path in sorted((source / "configs").glob("*.yml"))}
    models = {row["model"]: row for row in read_csv(source / "models.csv")}
    runs = []
    for path in sorted((source / "pythia-v1").glob("*.checkpoints.jsonl")):
        evaluations = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if any(evaluation["num_fewshot_in_config"] != 0 for evaluation in evaluations):
            continue  # five-shot figures are of the same checkpoints, but not comparable with these
        scores = read_csv(path.with_name(path.name.replace(".checkpoints.jsonl", ".scores.csv")))
        for variant in sorted({row["variant"] for row in scores}):
            chosen = [row for row in scores if row["variant"] == variant]
            evaluated = next(e for e in evaluations if e.get("variant", "") == variant)
            run = run_row(chosen, evaluated, configs, models)
            runs.append(run)
            yield f"scores/{run['run']}", list(score_rows(chosen))
    yield "runs", sorted(runs, key=lambda run: (int(run["parameter_count"]), run["run"]))
    yield "configs", list(config_rows({name: configs[name] for name in sorted({r["config"] for r in runs})}))


def run_row(scores: list[Row], evaluated: dict[str, Any], configs: Any, models: dict[str, Row]) -> Row:
    """What a series of evaluations tells of its run. The evaluated location is `EleutherAI/<name>`."""
    series, variant = scores[0]["model"], scores[0]["variant"]
    config_name = series.removesuffix("-bf16")
    config, model = configs[config_name], models[config_name]
    location = re.search(r"pretrained=EleutherAI/([^,]+)", evaluated["model_args"])
    assert location is not None
    intervened = variant.startswith("intervention")
    steps = sorted({int(row["step"]) for row in scores})
    return {
        "run": f"{series}-{variant}" if variant else series,
        "series": series,
        "variant": variant,
        "config": config_name,
        "data_version": model["data_version"],
        "parameter_count": str(parameter_count(config)),
        "gpus": model["gpus_in_comment"],
        "tokens_per_step": str(tokens_per_step(config, int(model["gpus_in_comment"]))),
        "hub": location[1] if intervened else config_name,
        # An intervention went on from the last checkpoint that was saved before its own first one.
        "parent": series if intervened else "",
        "parent_step": str(steps[0] - config["checkpoint_factor"]) if intervened else "",
    }


def score_rows(scores: list[Row]) -> Iterator[Row]:
    """One row for each step and task, with the texts of the source."""
    for metric in {row["metric"] for row in scores} - set(METRICS):
        raise ValueError(f"The table of scores has no column for the metric {metric!r}.")

    def key(row: Row) -> tuple[int, str, str]:
        return int(row["step"]), row["task"], row["task_version"]

    for (step, task, version), group in groupby(sorted(scores, key=key), key):
        row = {"step": str(step), "task": task, "version": version}
        found = {score["metric"]: score for score in group}
        for metric in METRICS:
            row[metric] = found[metric]["value"] if metric in found else ""
            row[f"{metric}_stderr"] = found[metric]["stderr"] if metric in found else ""
        yield row


def config_rows(configs: dict[str, dict[str, Any]]) -> Iterator[Row]:
    """One row for each option, one column for each config; cells are JSON, empty where it is not set."""
    flat = {name: dict(leaves(config)) for name, config in configs.items()}
    for option in dict.fromkeys(option for facts in flat.values() for option in facts):
        yield {"option": option} | {
            name: json.dumps(facts[option]) if option in facts else "" for name, facts in flat.items()
        }


def leaves(value: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from leaves(inner, f"{above}{name}.")
        else:
            yield above + name, inner


def read_config(path: Path) -> dict[str, Any]:
    """A GPT-NeoX config: JSON with comments and trailing commas. '-' and '_' mean the same in its names."""
    text = re.sub(r'("[^"]*")|#.*', lambda match: match[1] or "", path.read_text("utf-8"))
    config = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    config = {name.replace("-", "_"): value for name, value in config.items()}
    return config | {name: file_names(config[name]) for name in PATHS if name in config}


def file_names(value: str | list[str]) -> str | list[str]:
    return Path(value).name if isinstance(value, str) else [Path(item).name for item in value]


def tokens_per_step(config: dict[str, Any], gpus: int) -> int:
    """Micro batch × accumulation × data-parallel ranks × sequence length."""
    accumulation = config.get("gas") or config.get("gradient_accumulation_steps", 1)
    ranks = gpus // (config["model_parallel_size"] * max(1, config["pipe_parallel_size"]))
    batch = config["train_micro_batch_size_per_gpu"] * accumulation * ranks
    return int(batch * config["seq_length"])


def parameter_count(config: dict[str, Any]) -> int:
    """Weights and biases of GPT-NeoX with untied embeddings: 2Vh + L(12h² + 13h) + 2h."""
    width, vocabulary = config["hidden_size"], PADDED_VOCABULARY[config["model_parallel_size"]]
    block = 12 * width**2 + 13 * width
    return int(2 * vocabulary * width + config["num_layers"] * block + 2 * width)


def read_csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
