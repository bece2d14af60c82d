"""Registrations of the 89 DCLM models: each a run with its one published checkpoint."""

from collections.abc import Iterator
from functools import cache

from demo.reading import Body, Row, nested, read_table

PROJECT = "dclm"
REMOTE = "https://github.com/mlfoundations/open_lm"
NOTES = "The step is computed: tokens / (batch size × 2,048). The time is the earlier of those in the published files."


def runs() -> Iterator[Body]:
    """A body for each model's run."""
    for row in read_table("dclm/models"):
        yield {
            "project": PROJECT,
            "name": row["name"],
            "kind": kind(row),
            "team": "DataComp-LM",
            "model_family": "open_lm",
            "parameter_count": int(row["parameter_count"]),
            "config": config(row),
            "tags": {"suite": "dclm", "model_uuid": row["uuid"], "dataset": row["dataset"]},
        }


def attempts() -> Iterator[tuple[str, str, Body]]:
    """The one attempt of each run, with the version of the trainer."""
    for row in read_table("dclm/models"):
        yield PROJECT, row["name"], {"key": "published", "environment": {"open_lm": row["open_lm_version"]}}


def checkpoints() -> Iterator[Body]:
    """The final checkpoint of each model with its scores."""
    scored = {row["uuid"]: row for row in read_table("dclm/scores")}
    for row in read_table("dclm/models"):
        body: Body = {
            "project": PROJECT,
            "run": row["name"],
            "step": int(row["step"]),
            "attempt": 1,
            # The files give two dates, of the record and of the evaluation; by the earlier one it existed.
            "saved_at": min(row["created_at"], row["evaluated_at"]),
            "tokens_seen": int(row["tokens"]),
            "data_version": data_version(row),
            "code": {"remote": REMOTE},
            "pieces": {"weights": {"state": "present", "evidence": "named in the published record"}},
            "replicas": [{"uri": row["address"], "tier": "object"}],
            "scores": list(scores(row, scored[row["uuid"]])),
            "notes": NOTES,
        }
        if row["epoch"]:
            body["epoch"] = float(row["epoch"])
        yield body


@cache
def hyperparameters() -> dict[str, Row]:
    """Model uuid to its hyperparameters, as cells of JSON by dotted name."""
    return {row.pop("uuid"): row for row in read_table("dclm/hyperparameters")}


def config(model: Row) -> Body:
    return nested(hyperparameters()[model["uuid"]])


def kind(model: Row) -> str:
    """What the published record shows: weights of two models mixed, a decay phase, or training from scratch."""
    open_lm = config(model).get("open_lm")
    if open_lm is None:
        return "merge"
    return "cooldown" if "pretrained" in open_lm else "pretrain"


@cache
def datasets() -> dict[str, tuple[Row, list[Row]]]:
    """Data set uuid to its row and the rows of its sources."""
    sources: dict[str, list[Row]] = {}
    for row in read_table("dclm/sources"):
        sources.setdefault(row["dataset_uuid"], []).append(row)
    return {row["uuid"]: (row, sources[row["uuid"]]) for row in read_table("dclm/datasets")}


def data_version(model: Row) -> Body:
    """The model's data set with its sources. Two data sets have no record: each counts as its own source."""
    if model["dataset_uuid"] not in datasets():
        return {"name": model["dataset"], "mix": {model["dataset"]: 1.0}}
    row, sources = datasets()[model["dataset_uuid"]]
    return {"name": row["name"], "uri": row["address"], "mix": {each["source"]: share(row, each) for each in sources}}


def share(dataset: Row, source: Row) -> Body:
    """The weight of a source where it is known. Only of a single source are the tokens known, too."""
    known: Body = {"weight": float(source["share"])} if source["share"] else {}
    return known | ({"tokens": int(dataset["tokens"])} if source["share"] == "1" else {})


def scores(model: Row, figures: Row) -> Iterator[Body]:
    for task, value in figures.items():
        if task != "uuid" and value:
            body: Body = {
                "benchmark": task,
                "metric": "accuracy",
                "value": float(value),
                "harness": "dclm",
                "harness_version": model["eval_version"],
                "evaluated_at": model["evaluated_at"],
            }
            if task.endswith("_zeroshot"):
                body["n_shot"] = 0  # of the other tasks the file does not say it
            yield body
