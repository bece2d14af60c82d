"""Files that torch.save wrote: by hand, before torch 1.6, of Lightning, of Accelerate, of Hugging Face."""

import io
import json
import tarfile
import zipfile

import pytest
from cairn.formats.checkpoints import Inspection, PositionEvidence, Resumability, Unrecognised

from tests.client.formats.checkpoints.sources import files_of, inspect_files, inspected, reasons, states

BOTH = {"weights": "present", "optimizer": "present"}


def one_file(name: str, root: str = "/ckpt/run") -> Inspection:
    files = files_of("torch_save")
    return inspect_files({name: files[name]}, f"{root}/{name}")


def test_keys_tell_the_pieces_of_a_file_saved_by_hand() -> None:
    found = one_file("ckpt.pt")
    assert (found.format, found.step, found.step_source) == ("torch-save", 250, "ckpt.pt iter_num")
    assert states(found) == {**BOTH, "data_position": "unknown", "random_state": "absent"}
    assert "nothing says that the trainer skips" in found.pieces.data_position.evidence
    assert found.resumability is Resumability.UNKNOWN


def test_tied_tensors_are_parameters_once() -> None:
    found = one_file("ckpt.pt")
    assert (found.tensor_count, found.parameter_count) == (2, 64)


def test_a_count_of_samples_and_a_random_state_are_found_too() -> None:
    found = one_file("step_250.pt")
    assert found.pieces.data_position.position is PositionEvidence.COUNTER
    assert found.pieces.data_position.evidence == "step_250.pt consumed_samples"
    assert found.resumability is Resumability.EXACT


def test_the_form_before_torch_1_6_is_read_too() -> None:
    found = one_file("before-1.6.pt")
    assert found.format_version == "pickles (before torch 1.6)"
    assert (found.step, found.parameter_count) == (250, 64)
    assert states(found)["optimizer"] == "present"


def test_the_tar_of_the_oldest_torch_is_known_by_its_kind_alone() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("sys_info", "pickle", "storages"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    found = inspect_files({"old.pt": out.getvalue()})
    assert found.format_version == "tar (before torch 0.1.10)"
    assert states(found)["weights"] == "unknown"


def test_a_bare_state_dict_is_weights_only() -> None:
    found = one_file("weights.pth")
    assert (found.dtypes, found.resumability) == ({"f16": 64}, Resumability.WEIGHTS_ONLY)


def test_model_and_optimizer_in_two_files_are_one_checkpoint() -> None:
    found = inspected("torch_save/two_files")
    assert states(found) == {**BOTH, "data_position": "absent", "random_state": "absent"}
    assert found.resumability is Resumability.INCOMPLETE


def test_several_whole_files_never_pass_as_one_checkpoint() -> None:
    files = files_of("torch_save")
    with pytest.raises(Unrecognised, match=r"holds 2 \(ckpt.pt, step_250.pt\)"):
        inspect_files({name: files[name] for name in ("ckpt.pt", "step_250.pt")})


def test_a_second_version_of_the_weights_is_not_counted_as_more_parameters() -> None:
    weights = files_of("torch_save")["weights.pth"]
    found = inspect_files({"model.pth": weights, "model_ema.pth": weights})
    assert found.parameter_count == 64
    assert "another version" in reasons(found)


def test_a_file_of_zeros_and_a_file_cut_short_are_told() -> None:
    whole = files_of("torch_save/two_files")
    found = inspect_files({**whole, "optimizer.pt": bytes(5000)})
    assert "zeros" in reasons(found)
    assert found.complete is False
    found = inspect_files({**whole, "optimizer.pt": whole["optimizer.pt"][:2000]})
    assert "cut short" in reasons(found)


def test_a_zip_that_torch_did_not_write_is_not_taken_for_a_checkpoint() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    with pytest.raises(Unrecognised):
        inspect_files({"letter.docx": out.getvalue()})


def test_a_torchscript_program_is_named_as_such() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02N.")
        archive.writestr("model/constants.pkl", b"\x80\x02N.")
    assert "TorchScript" in reasons(inspect_files({"model.pt": out.getvalue()}))


# Hugging Face's older weights


def test_shards_of_pytorch_model_bin_are_read_with_their_index() -> None:
    found = inspected("bin_sharded")
    assert (found.format, found.parameter_count, found.complete) == ("pytorch-bin", 1704, True)
    assert found.resumability is Resumability.WEIGHTS_ONLY


def test_an_index_of_bins_that_disagrees_is_reported() -> None:
    files = files_of("bin_sharded")
    index = json.loads(files["pytorch_model.bin.index.json"])
    index["weight_map"]["invented"] = "pytorch_model-00001-of-00002.bin"
    found = inspect_files({**files, "pytorch_model.bin.index.json": json.dumps(index).encode()})
    assert "first invented" in reasons(found)
    del files["pytorch_model-00002-of-00002.bin"]
    assert inspect_files(files).missing == ("pytorch_model-00002-of-00002.bin",)


# Lightning


def test_lightning_at_the_end_of_an_epoch_can_go_on_by_its_count() -> None:
    found = inspected("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt")
    assert (found.format, found.format_version, found.step) == ("lightning", "2.6.6", 4)
    assert found.pieces.data_position.position is PositionEvidence.COUNTER
    assert found.resumability is Resumability.RESUMABLE
    assert found.facts["callbacks"] == ["ModelCheckpoint"]
    assert found.facts["best"]["monitor"] == "loss"


def test_lightning_in_the_middle_of_an_epoch_repeats_data_without_a_loader_state() -> None:
    found = inspected("lightning_ckpt/mid-epoch/epoch=0-step=3.ckpt")
    assert states(found)["data_position"] == "absent"
    assert "3 batches into an epoch" in found.pieces.data_position.evidence
    assert found.resumability is Resumability.INCOMPLETE


def test_lightning_with_the_state_of_its_loader_can_go_on_anywhere() -> None:
    found = inspected("lightning_ckpt/stateful/epoch=0-step=3.ckpt")
    assert found.pieces.data_position.position is PositionEvidence.STATE
    assert found.resumability is Resumability.RESUMABLE


def test_lightning_with_weights_only_has_no_optimizer() -> None:
    found = inspected("lightning_ckpt/weights-only/epoch=0-step=4.ckpt")
    assert states(found)["optimizer"] == "absent"
    assert "weights only" in found.pieces.optimizer.evidence


def test_a_lightning_file_cut_short_is_incomplete_and_keeps_the_step_of_its_name() -> None:
    (data,) = files_of("lightning_ckpt/mid-epoch").values()
    found = inspect_files({"epoch=0-step=3.ckpt": data[:4000]}, "/ckpt/epoch=0-step=3.ckpt")
    assert (found.complete, found.step) == (False, 3)


# Accelerate


def test_accelerate_without_a_loader_state_leaves_the_data_position_unknown() -> None:
    found = inspected("accelerate_state")
    assert found.format == "accelerate"
    assert states(found) == {**BOTH, "data_position": "unknown", "random_state": "present"}
    assert found.facts["scheduler_count"] == 2


def test_accelerate_with_a_stateful_loader_has_all_four_pieces() -> None:
    found = inspected("accelerate_stateful")
    assert found.pieces.data_position.position is PositionEvidence.STATE
    assert found.resumability is Resumability.EXACT


def test_the_number_in_accelerates_own_names_counts_saves_and_is_no_step() -> None:
    found = inspect_files(files_of("accelerate_state"), "/out/checkpoints/checkpoint_3")
    assert (found.step, found.facts["save_number"]) == (None, 3)
    assert inspect_files(files_of("accelerate_state"), "/out/step_40").step == 40


def test_a_broken_optimizer_of_accelerate_is_absent() -> None:
    files = files_of("accelerate_state")
    found = inspect_files({**files, "optimizer.bin": files["optimizer.bin"][:1500]})
    assert (states(found)["optimizer"], found.complete) == ("absent", False)


def test_a_save_that_broke_off_among_numbered_files_is_incomplete() -> None:
    """As seen in public: a temporary file, an empty one, and numbers that are not there."""
    weights = files_of("torch_save")["weights.pth"]
    names = ("last-model_part-0-shard0.pt", "last-model_part-0-shard2.pt")
    found = inspect_files({names[0]: b"", names[1]: weights, "last-model_part-7-shard1.pt.tmp": weights})
    assert found.complete is False
    assert found.missing == ("last-model_part-0-shard1.pt",)
    assert "shard0.pt: is empty" in reasons(found)
    assert "shard1.pt.tmp: is still being written" in reasons(found)
    assert found.resumability is Resumability.INCOMPLETE
