"""Degrees and families."""

import pytest

from registry.layout.model_shape import other_model
from registry.layout.spec import ContradictoryLayout, Degrees, Family, describe


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Degrees(tp=4, pp=2, dp=8, cp=1), Degrees(64, 4, 2, 8, 1)),
        (Degrees(world_size=64, tp=4, pp=2, cp=1), Degrees(64, 4, 2, 8, 1)),
        (Degrees(world_size=64, tp=4), Degrees(world_size=64, tp=4)),  # two unknowns: neither is guessed
        (Degrees(tp=4), Degrees(tp=4)),
        (Degrees(), Degrees()),
    ],
)
def test_only_the_one_missing_factor_is_filled_in(said: Degrees, expected: Degrees) -> None:
    assert said.completed() == expected


def test_factors_that_do_not_make_the_ranks_are_refused_with_the_product() -> None:
    with pytest.raises(ContradictoryLayout, match="is 64, which does not make 60 ranks"):
        Degrees(60, 4, 2, 8, 1).completed()


@pytest.mark.parametrize(
    ("format_name", "sharding", "extra", "family", "stage"),
    [
        # the sharding of the optimizer decides, not the format
        ("megatron-dist", None, {"distrib_optim_sharding_type": "dp_reshardable"}, Family.MEGATRON_DP, None),
        ("torch_dist", "dp_zero_gather_scatter", {}, Family.MEGATRON_GATHERED, None),
        (None, "fully_reshardable", {}, Family.MEGATRON_FULL, None),
        ("megatron-dist", None, {}, Family.MEGATRON, None),
        ("hf-trainer", "zero-3", {}, Family.ZERO, 3),
        ("deepspeed", "none", {}, Family.ZERO, None),
        ("deepspeed", "universal", {"zero_stage": 1}, Family.UNIVERSAL, 1),
        ("torch-dcp", "fsdp2", {}, Family.DCP, None),
        ("safetensors", None, {}, Family.WEIGHTS, None),
        ("hf-trainer", None, {}, Family.WEIGHTS, None),
        ("hf-trainer", "fsdp", {}, Family.UNKNOWN, None),  # one file a rank
        (None, None, {}, Family.UNKNOWN, None),
        ("lightning", None, {"zero_stage": "3", "mcore_version": "x"}, Family.UNKNOWN, None),
    ],
)
def test_the_family_is_found_by_the_sharding_first(
    format_name: str | None, sharding: str | None, extra: dict[str, object], family: Family, stage: int | None
) -> None:
    found = describe(format_name, sharding, Degrees(), extra)
    assert (found.family, found.zero_stage, found.mcore) == (family, stage, None)


def test_a_recorded_layout_that_contradicts_itself_is_taken_as_it_is() -> None:
    odd = Degrees(60, 4, 2, 8, 1)
    assert describe(None, None, odd).degrees == odd


@pytest.mark.parametrize(
    ("saved", "now", "said"),
    [
        ({"model.num_hidden_layers": 24}, {"num-layers": 32}, "number of layers is 32 and was saved as 24"),
        ({"d_model": 4096}, {"hidden_size": 4096}, ""),
        ({"hidden_size": 2048}, {"model.d_model": 4096}, "hidden size"),
        ({"tokenizer_name": "a"}, {"tokenizer_name_or_path": "b"}, "tokenizer"),
        ({"padded_vocab_size": 50304}, {"padded_vocab_size": 50432}, ""),  # the padding may change with TP
        ({"num_layers": 24}, {}, ""),
    ],
)
def test_another_model_is_named_by_what_differs(saved: dict[str, object], now: dict[str, object], said: str) -> None:
    found = other_model(saved, now)
    assert said in found
    assert bool(found) == bool(said)
