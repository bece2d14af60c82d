"""Copies described from what lies there, as they are recorded."""

import socket
from pathlib import Path

import cairn
import pytest
from blake3 import blake3
from cairn import Client
from cairn.digests import digest_tree, verify_tree
from cairn.digests.shapes import FileDigest
from cairn.errors import Invalid
from cairn.formats.checkpoints import Unreadable

from tests.client.conftest import Cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (("model.bin", b"weights"), ("sub/optim.bin", b"moments"), ("cairn.json", b"{}")):
        (tmp_path / "ckpt" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ckpt" / name).write_bytes(content)
    return tmp_path / "ckpt"


def test_a_copy_is_described_by_its_size(folder: Path) -> None:
    said = cairn.replica(folder, tier="shared")
    assert said == {"uri": str(folder), "tier": "shared", "bytes": 14, "file_count": 2}


def test_a_copy_on_a_local_disk_names_its_host(folder: Path) -> None:
    assert cairn.replica(folder, tier="local")["host"] == socket.gethostname()


def test_digests_come_with_the_algorithm_beside_them(folder: Path) -> None:
    said = cairn.replica(folder, tier="shared", digest=True)
    assert said["digest"] == {"algorithm": "blake3", "value": digest_tree(folder).value}
    assert said["manifest"] == [
        {"path": "model.bin", "bytes": 7, "digest": blake3(b"weights").hexdigest()},
        {"path": "sub/optim.bin", "bytes": 7, "digest": blake3(b"moments").hexdigest()},
    ]
    assert cairn.replica(folder, tier="shared", digest="xxh3-128")["digest"]["algorithm"] == "xxh3-128"


def test_what_cannot_be_described_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="local or shared"):
        cairn.replica(folder)
    with pytest.raises(Unreadable):
        cairn.replica(tmp_path / "nowhere", tier="shared")
    with pytest.raises(Unreadable):
        cairn.replica("s3://bucket/x?X-Amz-Signature=abc", digest=True)


def test_a_registration_keeps_the_digests_that_verify_the_files(live: Client, project: str, folder: Path) -> None:
    run = live.create_run(project, "7b-a")
    said = cairn.replica(folder, tier="shared", digest=True)
    made = live.register_checkpoint(run, 1000, replicas=[said])
    (copy,) = live.get_checkpoint(made).replicas
    assert copy["digest"] == said["digest"]
    assert (copy["bytes"], copy["file_count"]) == (14, 2)
    expected = [FileDigest(each["path"], each["bytes"], each["digest"]) for each in said["manifest"]]
    assert verify_tree(folder, expected) == ()
    assert (
        live.register_checkpoint(run, 1000, replicas=[cairn.replica(folder, tier="shared", digest=True)]).id == made.id
    )


def test_the_command_records_digests_when_asked(live: Client, project: str, folder: Path, cli: Cli) -> None:
    place = ("--project", project, "--run", "7b-a", "--path", str(folder), "--tier", "shared")
    assert cli("record", *place, "--step", "1", "--digest")[0] == 0
    found = next(live.iter_checkpoints(filter=f"project = '{project}'"))
    (copy,) = live.get_checkpoint(found).replicas
    assert copy["digest"] == {"algorithm": "blake3", "value": digest_tree(folder).value}
    code, _, err = cli("record", *place[:4], "--step", "2", "--path", f"{folder}-gone", "--tier", "shared", "--digest")
    assert code == 2
    assert "cannot be listed" in err or "is neither" in err or "-gone" in err
