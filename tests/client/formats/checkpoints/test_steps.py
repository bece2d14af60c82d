"""Which step a checkpoint is of."""

import json
from pathlib import Path

import pytest
from cairn.formats.checkpoints.steps import StepClaim, claims_of_place, decide_step, step_from_name


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500),
        ("checkpoint_500", 500),
        ("epoch=3-step=1200.ckpt", 1200),
        ("epoch=3-step=1200-v1.ckpt", 1200),
        ("iter_0000100", 100),
        ("step-41000", 41000),
        ("step41000", 41000),
        ("step_250.pt", 250),
        ("step1000-unsharded", 1000),
        ("step1000-tokens4B", 1000),
        ("global_step799", 799),
        ("global_step799_universal", 799),
        ("ep2-ba3000", 3000),
        ("run-ep0-ba500-rank0.pt", 500),
        ("training_step_40000_train_loss_3.2994_dev_loss_3.18824_dev_ppl_24.246", 40000),
        ("training_step_40000_train_loss_4.33256_dev_loss_4.11178_dev_ppl_1.084_1.152_1.219", 40000),
        ("STEP-5", 5),
    ],
)
def test_names_of_the_known_trainers_tell_their_step(name: str, step: int) -> None:
    assert step_from_name(name) == step


@pytest.mark.parametrize(
    "name",
    [
        *("last.ckpt", "model.safetensors", "release", "checkpoint-best", "checkpoint-10000 (deleted)", "7b-3.5", ""),
        *("llama-3-8b", "step", "stepping-stones", "checkpoint-99999999999999999999", "version_3"),
    ],
)
def test_other_names_tell_none(name: str) -> None:
    assert step_from_name(name) is None


def test_the_last_part_of_a_path_that_tells_a_step_counts() -> None:
    assert claims_of_place("/runs/step-500/model.safetensors") == [StepClaim(500, "name step-500")]
    assert claims_of_place("s3://bucket/step-500/checkpoint-7/") == [StepClaim(7, "name checkpoint-7")]
    assert claims_of_place("/step-500/a/b") == []


def test_the_first_claim_wins_and_the_rest_is_told_once() -> None:
    claims = [StepClaim(4, "state"), StepClaim(5, "name a"), StepClaim(4, "latest"), StepClaim(5, "name a")]
    found = decide_step(claims)
    assert (found.step, found.source) == (4, "state")
    assert found.disagreements == ("state says step 4, name a says 5",)
    assert decide_step([]).step is None


def test_listings_seen_in_public_threads_give_the_steps_that_people_expected() -> None:
    path = Path(__file__).parents[5] / "shared" / "data" / "ckpt_layout" / "observed_listings.jsonl"
    if not path.exists():
        pytest.skip("the listings are not on this machine")
    seen = {entry["kind"]: entry for entry in map(json.loads, path.read_text().splitlines())}
    mismatch = [
        step_from_name(part) for name, _ in seen["deepspeed step mismatch"]["files"] for part in name.split("/")
    ]
    assert mismatch == [200, 200, 800, 799, 1200, 1192]
    assert {step_from_name(name) for name, _ in seen["metric in file name"]["files"]} == {40000}
    assert [step_from_name(name) for name, _ in seen["hf trainer rotation"]["files"]] == [9000, 9900, None]
