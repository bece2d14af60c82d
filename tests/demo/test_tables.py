"""What the tables say, before any registry is involved."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from demo import tables
from demo.reading import TABLES
from tests.demo.figures import FIGURES

Place = tuple[str, str, int]


@pytest.fixture(scope="module")
def checkpoints() -> dict[Place, dict[str, Any]]:
    return {(body["project"], body["run"], body["step"]): body for body in tables.checkpoints()}


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], dict[str, Any]]:
    return {(body["project"], body["name"]): body for body in tables.runs()}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure[1][:30]}-{figure[2]}-{figure[3]}")
def test_twenty_figures_equal_the_published_ones_to_the_digit(checkpoints, figure):
    project, run, step, task, metric, value, stderr = figure
    scores = checkpoints[project, run, step]["scores"]
    (found,) = [score for score in scores if (score["benchmark"], score["metric"]) == (task, metric)]
    assert repr(found["value"]) == value
    assert (repr(found["stderr"]) if "stderr" in found else "") == stderr


def test_the_counts_are_those_of_the_published_files(checkpoints, runs):
    assert Counter(project for project, _ in runs) == {"pythia": 17, "dclm": 89}
    assert Counter(project for project, _, _ in checkpoints) == {"pythia": 380, "dclm": 89}
    scores: Counter[str] = Counter()
    for (project, _, _), body in checkpoints.items():
        scores[project] += len(body["scores"])
    assert scores == {"pythia": 61_454, "dclm": 4_860}


def test_every_series_of_a_model_has_27_checkpoints(checkpoints, runs):
    per_run = Counter(run for project, run, _ in checkpoints if project == "pythia")
    models = [name for (project, name), body in runs.items() if body["tags"].get("role") == "model"]
    assert len(models) == 10
    assert {per_run[name] for name in models} == {27}


def test_every_dclm_model_has_about_fifty_accuracies(checkpoints):
    bodies = [body for (project, _, _), body in checkpoints.items() if project == "dclm"]
    assert {score["metric"] for body in bodies for score in body["scores"]} == {"accuracy"}
    assert all(50 <= len(body["scores"]) <= 56 for body in bodies)


def test_an_intervention_starts_from_a_checkpoint_that_is_there_before_its_own_first_one(checkpoints):
    branches = [(run, body["resumed_from"]) for _, run, body in tables.attempts() if "resumed_from" in body]
    assert {(run, start["run"], start["step"]) for run, start in branches} == {
        ("pythia-70m-deduped-intervention", "pythia-70m-deduped", 133_000),
        ("pythia-1.4b-deduped-intervention", "pythia-1.4b-deduped", 133_000),
        ("pythia-1.4b-deduped-intervention-long", "pythia-1.4b-deduped", 113_000),
        ("pythia-6.9b-deduped-intervention", "pythia-6.9b-deduped", 133_000),
    }
    for run, start in branches:
        assert ("pythia", start["run"], start["step"]) in checkpoints
        assert min(step for _, name, step in checkpoints if name == run) == start["step"] + 1000


def test_an_intervention_differs_from_its_baseline_in_the_data(checkpoints, runs):
    baseline = checkpoints["pythia", "pythia-1.4b-deduped-baseline", 134_000]
    changed = checkpoints["pythia", "pythia-1.4b-deduped-intervention", 134_000]
    assert baseline["data_version"]["name"] == "pile-deduped"
    assert changed["data_version"]["name"] == "pile-deduped-intervention"
    config = runs["pythia", "pythia-1.4b-deduped-intervention"]["config"]
    assert config.items() <= runs["pythia", "pythia-1.4b-deduped-baseline"]["config"].items()


@pytest.mark.parametrize(
    ("run", "count"),  # the figures of the model cards
    [
        ("pythia-70m", 70_426_624),
        ("pythia-160m", 162_322_944),
        ("pythia-1b-deduped", 1_011_781_632),
        ("pythia-1.4b", 1_414_647_808),
        ("pythia-6.9b", 6_857_302_016),
    ],
)
def test_the_computed_parameter_count_is_that_of_the_model_card(runs, run, count):
    assert runs["pythia", run]["parameter_count"] == count


def test_a_full_training_run_saw_the_published_number_of_tokens(checkpoints):
    seen = {body["tokens_seen"] for (_, _, step), body in checkpoints.items() if step == 143_000}
    assert seen == {299_892_736_000}


def test_the_config_holds_the_published_hyperparameters(runs):
    assert runs["pythia", "pythia-6.9b-deduped"]["config"]["optimizer"]["params"]["lr"] == 0.00012
    assert "fp16" not in runs["pythia", "pythia-1b-bf16"]["config"]
    wiseft = runs["dclm", "wiseft_a80_mix3_long_47_mix3_34"]
    assert (wiseft["kind"], wiseft["config"]["chinchilla_multiplier"]) == ("merge", 1.96)


def test_a_share_of_a_source_is_only_given_where_it_is_known(checkpoints):
    versions = {body["data_version"]["name"]: body["data_version"] for body in checkpoints.values()}
    assert versions["mix_cc95wiki05"]["mix"] == {
        "rw_v2_fasttext_openhermes_vs_rw_v2_bigram_0.1": {"weight": 0.95},
        "dolma_wiki": {"weight": 0.05},
    }
    assert versions["rw_original"]["mix"] == {"rw_original": {"weight": 1.0, "tokens": 579_578_773_317}}
    assert list(versions["rpj_original"]["mix"].values()) == [{}] * 7


def test_nothing_was_made_up_where_the_sources_are_silent(checkpoints):
    for (project, _, _), body in checkpoints.items():
        assert "commit" not in body["code"]
        assert "loss" not in body
        assert set(body["pieces"]) == {"weights"}
        assert ("saved_at" in body) == (project == "dclm")


def test_no_table_names_a_folder_of_a_person():
    for path in sorted(TABLES.rglob("*.csv")):
        found = re.search(r"REMOVED|(?:/|^)(?:users|home|scratch|media|tmp|fsx)/", path.read_text("utf-8"), re.M)
        assert found is None, (path.name, found)


def test_an_address_from_which_something_was_taken_has_no_bucket(checkpoints):
    addresses = [body["replicas"][0]["uri"] for body in checkpoints.values() if body["project"] == "dclm"]
    assert len(set(addresses)) == 89
    assert Counter(address.split("/")[2] for address in addresses) == {"": 79, "dcnlp-west": 10}


def test_every_body_is_json_that_the_service_could_receive(checkpoints):
    bodies = [*tables.runs(), *checkpoints.values(), *(body for _, _, body in tables.attempts())]
    assert json.loads(json.dumps(bodies, allow_nan=False)) == bodies


def test_the_tables_stay_small():
    assert sum(path.stat().st_size for path in TABLES.rglob("*.csv")) < 6_000_000
