"""A list of samples that is too large for a request is sent without its texts, and says the same."""

import importlib
import json
from pathlib import Path

import pytest
from cairn.formats.evals import lm_eval_samples, read_evals
from cairn.results.gather import gather

from tests.client.formats.evals import samples

sending = importlib.import_module("cairn.results.send")  # the package has a function of this name


def test_the_lines_without_texts_give_the_same_scores_and_samples(tmp_path: Path) -> None:
    path = tmp_path / "samples_piqa_2026-01-21T03-44-18.458309.jsonl"
    path.write_bytes(samples.SAMPLES)
    slim = lm_eval_samples.slim(str(path))
    assert read_evals(slim, name=path.name).scores == read_evals(samples.SAMPLES, name=path.name).scores
    assert all("doc" not in json.loads(line) for line in slim.splitlines())


def test_of_a_large_list_the_slim_lines_are_sent_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "samples_piqa_2026-01-21T03-44-18.458309.jsonl"
    path.write_bytes(samples.SAMPLES)
    (result,) = gather([path]).results
    monkeypatch.setattr(sending, "RAW_BYTES", len(samples.SAMPLES) - 1)
    ((name, content),) = sending._parts(result)
    assert Path(name).name == path.name
    assert content == lm_eval_samples.slim(str(path))
    monkeypatch.setattr(sending, "RAW_BYTES", 10)
    ((name, content),) = sending._parts(result)
    assert name.endswith(".scores.jsonl")
