"""Tables of the DCLM models: the models with their one published checkpoint, hyperparameters, data, scores."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from demo.reading import Row

Record = dict[str, Any]
SEQUENCE_LENGTH = 2048  # of the open_lm configs that these models name
# Arguments of the trainer that shape the weights and are not among the hyperparameters already.
ARGUMENTS = (
    *("attn-name", "averagers", "beta2", "data-key", "data-tolerate-error-p", "data-tolerate-num-ckpts"),
    *("epochs", "grad-clip-norm", "model-norm", "multiple-data-passes", "precision", "pretrained"),
    *("reference-model", "rho1-k", "rho1-switch", "torchcompile", "train-num-samples", "workers"),
)
# Folders of one person, and buckets whose name the publisher took out.
PERSONAL = re.compile(r"(?:users/[^/]+|scratch)/[^/]+/")
REMOVED = re.compile(r"\*+REMOVED\*+")


def tables(source: Path) -> Iterator[tuple[str, list[Row]]]:
    """Name and rows of every table. `source` holds the folders `models`, `evals` and `datasets`."""
    models = sorted(read_folder(source / "models"), key=lambda model: str(model["name"]))
    datasets = sorted(read_folder(source / "datasets"), key=lambda dataset: str(dataset["name"]))
    evaluations = {record["model_uuid"]: record for record in read_folder(source / "evals") if "model_uuid" in record}
    used = {model["dataset_uuid"] for model in models}
    yield "models", [model_row(model, evaluations[model["uuid"]]) for model in models]
    yield "hyperparameters", [hyperparameter_row(model) for model in models]
    yield "scores", list(score_rows(models, evaluations))
    yield "datasets", [dataset_row(dataset) for dataset in datasets if dataset["uuid"] in used]
    yield "sources", [row for dataset in datasets if dataset["uuid"] in used for row in source_rows(dataset)]


def model_row(model: Record, evaluation: Record) -> Row:
    """One model. The step of its checkpoint is computed: whole batches in the tokens that it was trained on."""
    settings = model["hyperparameters"]
    epoch = re.search(r"/epoch_(\d+)\.pt$", model["checkpoint_url"])
    return {
        "uuid": model["uuid"],
        "name": model["name"],
        "dataset": model["dataset_name"],
        "dataset_uuid": model["dataset_uuid"],
        "parameter_count": settings["params"],
        "tokens": settings["tokens"],
        "step": str(settings["tokens"] // (settings["global_bs"] * SEQUENCE_LENGTH)),
        "epoch": epoch[1] if epoch else "",
        "created_at": moment(model["creation_date"]),
        "open_lm_version": model["open_lm_version"],
        "address": address(model["checkpoint_url"]),
        "eval_uuid": evaluation["uuid"],
        "evaluated_at": moment(evaluation["creation_date"]),
        "eval_version": evaluation["eval_version"],
    }


def hyperparameter_row(model: Record) -> Row:
    """Hyperparameters and the trainer's arguments; cells are JSON, empty where a model does not say."""
    given = arguments([str(word) for word in model["open_lm_args"]])
    facts = dict(model["hyperparameters"])
    facts |= {f"open_lm.{name.replace('-', '_')}": given[name] for name in ARGUMENTS if name in given}
    return {"uuid": model["uuid"]} | {name: json.dumps(value) for name, value in facts.items()}


def arguments(words: list[str]) -> Record:
    """Flag to value; true for a flag alone. Of a path only run and file stay: the rest is one cluster's."""
    found: Record = {}
    for position, word in enumerate(words):
        following = words[position + 1 : position + 2]
        if word.startswith("--"):
            found[word[2:]] = True if not following or following[0].startswith("--") else plain(following[0])
    return found


def plain(text: str) -> Any:
    if "/" in text:
        return "/".join(text.split("/")[-3:])
    return json.loads(text) if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) else text


def score_rows(models: list[Record], evaluations: dict[str, Record]) -> Iterator[Row]:
    """One row for each model, one column for each task, with the digits of the source."""
    icl = {model["uuid"]: evaluations[model["uuid"]]["eval_metrics"]["icl"] for model in models}
    tasks = sorted({task for scores in icl.values() for task in scores})
    for uuid, scores in icl.items():
        yield {"uuid": uuid} | {task: scores.get(task, "") for task in tasks}


def dataset_row(dataset: Record) -> Row:
    sampling = (dataset.get("sampling_yaml") or {}).get("sampling_frequencies")
    return {
        "uuid": dataset["uuid"],
        "name": dataset["name"],
        "created_at": moment(dataset["creation_date"]),
        "tokens": dataset["num_tokens"],
        "bytes": dataset["size"],
        "tokenizer": dataset["tokenizer"],
        "address": address(dataset["dataset_url"]),
        "code_commit": dataset["dcnlp_commit_hash"],
        "sampling_frequencies": json.dumps(sampling) if sampling else "",
        "note": dataset.get("note", ""),
    }


def source_rows(dataset: Record) -> Iterator[Row]:
    """The sources of a data set. A share is given only where one source, or a note, leaves no doubt."""
    for name, (uuid, repeats, share) in listed_sources(dataset).items():
        yield {
            "dataset_uuid": dataset["uuid"],
            "source": name,
            "source_uuid": uuid,
            "repeats": str(repeats),
            "share": share,
        }


def listed_sources(dataset: Record) -> dict[str, tuple[str, int, str]]:
    noted = re.findall(r"(\d+)% (\w+)(?: \((.+?)\.json\))?", dataset.get("note", ""))
    if noted:
        return {inner or name: ("", 1, str(int(percent) / 100)) for percent, name, inner in noted}
    sources = dataset["sources"] or dataset["name"]  # without a list, a data set is its own source
    if isinstance(sources, str):
        return {sources: ("", 1, "1")}
    uuids = {source["name"]: source["uuid"] for source in sources}
    share = "1" if len(uuids) == 1 else ""
    repeats = Counter(source["name"] for source in sources)
    return {name: (uuid, repeats[name], share) for name, uuid in uuids.items()}


def address(url: str) -> str:
    """An address without people. One from which something was taken has no bucket: it cannot be opened."""
    bucket, _, path = url.removeprefix("s3://").partition("/")
    public, taken = PERSONAL.subn("", path)
    return f"s3:///{public}" if taken or REMOVED.search(bucket) else f"s3://{bucket}/{public}"


def moment(text: str) -> str:
    """'2024_03_22-01_34_50' as ISO 8601. The source names no zone; UTC is assumed."""
    return datetime.strptime(f"{text}+0000", "%Y_%m_%d-%H_%M_%S%z").strftime("%Y-%m-%dT%H:%M:%SZ")


def read_folder(folder: Path) -> Iterator[Record]:
    """Every record of a folder; fractions stay text where they are figures, so that no digit changes."""
    for path in sorted(folder.glob("*.json")):
        text = path.read_text("utf-8")
        record: Record = json.loads(text)
        if "eval_metrics" in record:
            record = json.loads(text, parse_float=str, parse_int=str)
        yield record
