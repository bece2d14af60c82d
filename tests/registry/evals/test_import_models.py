"""A result file of another model goes in as it was asked for, with a note that names both models."""

import json
from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.evals.import_models import differ, traits_of
from registry.evals.import_places import Target
from registry.evals.imports import FileReport, Upload, import_results
from tests.factories import make_checkpoint, make_project, make_run


def result_of(model: str, arguments: str = "", **results: float) -> bytes:
    """A file of lm-evaluation-harness 0.3."""
    document: dict[str, Any] = {
        "results": {name: {"acc": value} for name, value in (results or {"piqa": 0.6}).items()},
        "versions": dict.fromkeys(results or ["piqa"], 0),
        "config": {"model": "gpt2", "model_args": f"pretrained={model}{arguments}", "num_fewshot": 0, "limit": None},
    }
    return json.dumps(document).encode()


def imported(session: Session, run: str, *files: bytes, **known: Any) -> list[FileReport]:
    checkpoint = make_checkpoint(session, make_run(session, make_project(session), run, **known), 143_000)
    uploads = [Upload(f"{number}.json", content) for number, content in enumerate(files)]
    return import_results(session, uploads, Target(checkpoint_id=checkpoint))


def doubts(report: FileReport) -> list[str]:
    return [note for note in report.notes if "of the model" in note]


def test_a_file_of_another_model_is_taken_with_a_note_that_names_both(session: Session) -> None:
    (report,) = imported(session, "pythia-70m", result_of("facebook/opt-350m"))
    assert report.imported == 1
    assert doubts(report) == ["it says that it is of the model 'facebook/opt-350m'; recorded for the run 'pythia-70m'"]


def test_two_models_of_one_import_into_one_checkpoint_are_named(session: Session) -> None:
    files = (result_of("EleutherAI/pythia-1b"), result_of("facebook/opt-350m"))
    first, second = imported(session, "baseline", *files)
    assert doubts(first) == []
    assert doubts(second) == [
        "it is of the model 'facebook/opt-350m', and 0.json of 'EleutherAI/pythia-1b': "
        "both were recorded for one checkpoint"
    ]


def test_a_run_that_has_no_telling_name_is_known_by_its_size(session: Session) -> None:
    (other,) = imported(session, "baseline", result_of("EleutherAI/pythia-1b"), parameter_count=70_426_624)
    assert len(doubts(other)) == 1
    (own,) = imported(session, "baseline", result_of("EleutherAI/pythia-160m"), parameter_count=85_056_000)
    assert doubts(own) == []  # its embeddings are not counted


@pytest.mark.parametrize(
    ("run", "model"),
    [
        ("pythia-70m", "EleutherAI/pythia-70m"),
        ("pythia-70m-deduped", "EleutherAI/pythia-70m"),
        ("pythia-70m", "/opt/ckpt/hf"),
        ("pythia-70m", "/shared/runs/a/step143000"),
        ("pythia-70m", "./out/checkpoint-143000"),
        ("llama-7b-a", "/scratch/7b-a/41000/hf"),
        ("7b-v3", "/scratch/llama-2-7b-hf"),
        ("atlas", "meta-llama/Llama-3-8b"),
        ("stablelm-1b", "stablelm-jp-1b-jav1-sl2k-300b"),
        ("moe", "Qwen/Qwen1.5-MoE-A2.7B"),
    ],
)
def test_a_path_to_the_checkpoint_itself_raises_no_doubt(session: Session, run: str, model: str) -> None:
    (report,) = imported(session, run, result_of(model))
    assert doubts(report) == []


def test_of_an_adapter_only_the_base_is_named_which_tells_nothing(session: Session) -> None:
    (report,) = imported(session, "pythia-70m", result_of("facebook/opt-350m", ",peft=/out/adapter"))
    assert doubts(report) == []


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("EleutherAI/pythia-6.9b", "pythia-7b", False),
        ("EleutherAI/pythia-6.9b", "pythia-2.8b", True),
        ("bigscience/bloomz-560m", "bloom-560m", False),
        ("gpt2-xl", "openai/gpt-2", False),
        ("Qwen2.5-7B-Instruct", "mistral-7b", True),
        ("step10m", "pythia-70m", False),
        ("google/gemma-2b", "EleutherAI/gpt-neox-20b", True),
    ],
)
def test_names_differ_by_size_or_by_family(one: str, other: str, apart: bool) -> None:
    assert differ(traits_of(one), traits_of(other)) is apart
    assert differ(traits_of(other), traits_of(one)) is apart
