"""Damaged distributed checkpoints: whatever bytes are flipped or cut, the answer is an inspection or a refusal."""

import random

import pytest
from cairn.formats.checkpoints import Inspection, Unreadable

from tests.client.formats.checkpoints.sources import files_of, inspect_files

DAMAGED = [
    ("dcp/fsdp2/step-20", ".metadata"),
    ("dcp/fsdp2/step-20", "__0_0.distcp"),
    ("megatron/torch_dist/iter_0000020", "common.pt"),
    ("megatron/torch_dist/iter_0000020", "metadata.json"),
    ("megatron/zarr/iter_0000020", "optimizer.state.step/.zarray"),
    ("megatron/legacy/single/iter_0000020", "mp_rank_00/model_optim_rng.pt"),
    ("deepspeed/zero3/global_step3", "zero_pp_rank_0_mp_rank_00_model_states.pt"),
    ("deepspeed/pipeline", "latest"),
    ("deepspeed/universal/global_step3_universal", "mp_rank_00_model_states.pt"),
]


def damaged(data: bytes, chance: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not content:
            break
        at = chance.randrange(len(content))
        kind = chance.randrange(4)
        if kind == 0:
            content[at] = chance.randrange(256)
        elif kind == 1:
            del content[at : at + chance.randrange(1, 40)]
        elif kind == 2:
            content[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:
            del content[at:]
    return bytes(content)


@pytest.mark.parametrize(("folder", "path"), DAMAGED)
def test_damage_of_any_kind_is_answered(folder: str, path: str) -> None:
    files = files_of(folder)
    for seed in range(60):
        changed = {**files, path: damaged(files[path], random.Random(seed))}
        try:
            found = inspect_files(changed, "/ckpt/step-20")
        except Unreadable:
            continue
        assert isinstance(found, Inspection)
        assert found.files >= len(files) - 1
