"""Configurations compared by meaning."""

from typing import Any

import pytest

from registry.provenance.config_diff import Scalar, canonical, classify, diff_configs
from registry.provenance.suspects import changes_of_config
from registry.snapshots import flatten as leaves


def flatten(config: dict[str, Any]) -> dict[str, Scalar]:
    return dict(leaves(config))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1e-4, 0.0001),
        ("1e-4", 0.0001),
        ("1e-4", "0.00010"),
        (1, 1.0),
        ("1.50", 1.5),
        ("True", True),
        ("500_000", 500000),
        ("4GiB", 4294967296),
        ("1.5 kB", 1500),
        ("null", None),
        (float("nan"), "NaN"),
        ("-0", 0),
        ("10%", 0.1),
        ("12.5 %", "0.125"),
    ],
)
def test_values_of_one_meaning_are_equal(left: object, right: object) -> None:
    assert diff_configs({"x": left}, {"x": right}) == []  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        ("10%", 10),
        ("2k", 2048),
        ("2k", 2000),
        (0, None),
        ("adam", "adamw"),
        (1e-4, 1.1e-4),
        (2**80, 2**80 + 1),
        ("1e-4x", 1e-4),
    ],
)
def test_values_of_different_meaning_differ(left: object, right: object) -> None:
    assert [each.change for each in diff_configs({"x": left}, {"x": right})] == ["changed"]  # type: ignore[dict-item]


def test_an_exponent_beyond_all_numbers_is_kept_as_text() -> None:
    assert canonical("1e99999999999999999999") == "1e99999999999999999999"


def test_added_removed_and_changed_each_with_its_class() -> None:
    old = {"optimizer": {"lr": 3e-4, "name": "adamw"}, "model": {"num_layers": 16}, "wandb_project": "a"}
    new = {"optimizer": {"lr": 1e-4, "name": "adamw"}, "data": {"paths": ["web", "math"]}, "wandb_project": "b"}
    found = {c.path: (c.change, c.kind, c.old, c.new) for c in diff_configs(flatten(old), flatten(new))}
    assert found == {
        "optimizer.lr": ("changed", "optimiser", 3e-4, 1e-4),
        "model.num_layers": ("removed", "model", 16, None),
        "data.paths.0": ("added", "data", None, "web"),
        "data.paths.1": ("added", "data", None, "math"),
        "wandb_project": ("changed", "inert", "a", "b"),
    }


def test_one_setting_under_the_names_of_two_launchers_is_no_change() -> None:
    old = {"gas": 1, "rotary-pct": 0.25, "seq-length": 2048}
    new = {"gradient_accumulation_steps": 1, "rotary_pct": 0.25, "sequence_len": 2048}
    assert diff_configs(old, new) == []


def test_an_absent_value_is_not_an_empty_one() -> None:
    assert diff_configs(flatten({"a": {}, "b": []}), flatten({"a": {}, "b": []})) == []
    assert [c.change for c in diff_configs({"a": {}}, {"a": []})] == ["changed"]
    assert [c.change for c in diff_configs({"c": None}, {})] == ["removed"]


@pytest.mark.parametrize("value", [None, "null", "None"])
def test_an_absent_key_and_a_null_are_shown_and_not_suspected(value: object) -> None:
    for old, new in (({"a": 1, "d": value}, {"a": 1}), ({"a": 1}, {"a": 1, "d": value})):
        (change,) = diff_configs(old, new)  # type: ignore[arg-type]
        assert (change.path, change.not_recorded_on) == ("d", None)
        assert changes_of_config([change]) == []
    assert changes_of_config(diff_configs({"a": 1, "d": 0}, {"a": 1})) != []
    assert changes_of_config(diff_configs({"a": 1, "d": None}, {"a": 1, "d": 2})) != []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("train-data-paths.0", "data"),
        ("seed", "data"),
        ("train_micro_batch_size_per_gpu", "data"),
        ("optimizer.params.lr", "optimiser"),
        ("optimizer.name", "optimiser"),
        ("weight-decay", "optimiser"),
        ("gradient_clipping", "optimiser"),
        ("warmup", "schedule"),
        ("lr-decay-style", "schedule"),
        ("scheduler.t_warmup", "schedule"),
        ("num-layers", "model"),
        ("rotary-pct", "model"),
        ("something_never_heard_of", "model"),
        ("tokenizer-type", "tokenizer"),
        ("vocab-file", "tokenizer"),
        ("model-parallel-size", "parallel"),
        ("zero_optimization.stage", "parallel"),
        ("fp16.loss_scale", "precision"),
        ("bf16", "precision"),
        ("env.NCCL_DEBUG", "env"),
        ("git_commit", "code"),
        ("wandb_project", "inert"),
        ("log-interval", "inert"),
        ("checkpoint-factor", "inert"),
        ("name", "inert"),
    ],
)
def test_classes_of_paths_of_real_training_configurations(path: str, kind: str) -> None:
    assert classify(path) == kind


def unrecorded(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str | None]:
    return {each.path: each.not_recorded_on for each in diff_configs(flatten(old), flatten(new))}


def test_a_group_that_one_side_says_nothing_of_is_not_recorded_there() -> None:
    whole = {"lr": 1e-3, "open_lm": {"beta2": 0.95, "workers": 2}, "paths": ["web"]}
    part = {"lr": 1e-3}
    assert unrecorded(whole, part) == dict.fromkeys(("open_lm.beta2", "open_lm.workers", "paths.0"), "candidate")
    assert unrecorded(part, whole) == dict.fromkeys(("open_lm.beta2", "open_lm.workers", "paths.0"), "baseline")
    assert {each.change for each in diff_configs(flatten(whole), flatten(part))} == {"removed"}


def test_a_value_missing_from_a_group_that_both_recorded_was_removed() -> None:
    assert unrecorded({"open_lm": {"beta2": 0.95, "workers": 2}}, {"open_lm": {"beta2": 0.95}}) == {
        "open_lm.workers": None
    }
    assert unrecorded({"lr": 1, "wd": 0.1}, {"lr": 1}) == {"wd": None}  # no group: one setting more or less
    assert unrecorded({"lr": 1, "Open-LM": {"a": 1}}, {"lr": 1, "open_lm": {"a": 2}}) == {"open_lm.a": None}


def test_an_empty_config_recorded_nothing() -> None:
    assert unrecorded({"lr": 1}, {}) == {"lr": "candidate"}
    assert unrecorded({}, {"lr": 1}) == {"lr": "baseline"}
    assert unrecorded({}, {}) == {}
