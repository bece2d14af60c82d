"""Every task of the result files at hand finds its place in the benchmark table; what is left out is listed.

The files are not part of the project: where they are absent, the test is skipped.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.evals.catalogue import LOWER_METRICS, catalogue

DATA = Path(__file__).parents[4] / "shared" / "data"

# Tasks that are left without a capability on purpose. There is none: a new one is put here with its reason, or mapped.
UNMAPPED: frozenset[str] = frozenset()


def _tasks() -> Iterator[tuple[str, str]]:
    for path in sorted(DATA.glob("pythia/**/*.scores.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            yield from ((row["task"], row["metric"]) for row in csv.DictReader(file))
    for path in sorted((DATA / "dclm" / "evals").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        metrics = found.get("eval_metrics", found).get("icl", {})
        yield from ((name, "accuracy") for name in metrics)
    for path in sorted((DATA / "evals" / "lm_eval_v03").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        yield from ((name, metric) for name, figures in found["results"].items() for metric in figures)


@pytest.mark.skipif(not DATA.is_dir(), reason="the result files are not at hand")
def test_every_task_at_hand_is_known() -> None:
    tasks = {(name, metric) for name, metric in _tasks() if not metric.endswith("_stderr")}
    assert len(tasks) > 100
    left = {
        name
        for name, metric in tasks
        if metric not in LOWER_METRICS and catalogue().for_metric(name, metric).capability is None
    }
    assert left == UNMAPPED


@pytest.mark.skipif(not DATA.is_dir(), reason="the result files are not at hand")
def test_every_row_of_the_taxonomy_is_in_the_table() -> None:
    rows = json.loads((DATA / "taxonomy.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) > 90
    for row in rows:
        pairs = [metric.rpartition(",") for metric in row["metrics"]]
        metric, filter = (pairs[0][0], pairs[0][2]) if pairs else ("", "")
        entry = catalogue().for_metric(row["task"], metric, "" if filter == "none" else filter)
        shown = (row["task"], entry.capability, entry.direction.value, entry.scale)
        assert shown == (row["task"], row["capability"], row["direction"], row["scale"])


@pytest.mark.parametrize(
    ("written", "name", "capability"),
    [
        ("minerva_math", "minerva_math", "math"),
        ("MATH-500", "hendrycks_math500", "math"),
        ("hendrycks_math500", "hendrycks_math500", "math"),
        ("svamp_cot", "svamp_cot", "math"),
        ("math_qa", "mathqa", "math"),
        ("pubmed_qa_labeled", "pubmedqa", "knowledge"),
        ("hendrycksTest-anatomy", "mmlu_anatomy", "knowledge"),
        ("agi_eval_sat_math", "agi_eval_sat_math", "math"),
    ],
)
def test_names_that_harnesses_write_have_their_place(written: str, name: str, capability: str) -> None:
    found = catalogue().get(written)
    assert found is not None
    assert (found.name, found.capability) == (name, capability)
