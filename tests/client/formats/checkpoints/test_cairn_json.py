"""`cairn.json`: written whole or not at all, read strictly, and enough to register a checkpoint again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import LocalSource, Unreadable, cairn_json, inspect
from cairn.formats.checkpoints.source import Listing

from tests.client.formats.checkpoints.sources import MemorySource, files_of

SAID: dict[str, Any] = {
    "id": "ck_1",
    "project": "llm",
    "run": {"id": "r_1", "name": "7b-a"},
    "attempt": 2,
    "step": 1000,
    "kind": "archive",
    "saved_at": "2026-11-01T10:00:00Z",
    "pieces": {
        "weights": "present",
        "optimizer": {"state": "present", "evidence": ".metadata"},
        "data_position": {"state": "present", "position_evidence": "counter"},
        "random_state": "absent",
    },
    "scores": [{"benchmark": "gsm8k", "metric": "exact_match", "filter": "", "value": 0.61, "stderr": "NaN"}],
    "parents": [
        {
            "relation": "resumed_from",
            "checkpoint_id": "ck_0",
            "of": {"project": "llm", "run": "7b-a", "attempt": 1, "step": 500, "kind": "archive"},
        }
    ],
    "layout": {"world_size": 8, "tp": 2, "sharding": "zero-1", "extra": {"evidence": {"tp": "args"}}},
    "loss": "NaN",
    "tokens_seen": 4_000_000_000,
    "metrics": {"grad_norm": 0.5},
    "tags": {"phase": "预训练"},
    "digest": {"algorithm": "blake3", "value": "ab12"},
    "manifest": [{"path": "model.safetensors", "bytes": 5, "digest": "blake3:ab"}, {"path": "a/b.pt", "bytes": 0}],
}


def said(**changes: Any) -> dict[str, Any]:
    return {**SAID, **changes}


def test_what_is_written_is_read_back_as_it_was(tmp_path: Path) -> None:
    place = cairn_json.write(tmp_path, SAID)
    assert place == tmp_path / "cairn.json"
    assert cairn_json.read(Listing.of(LocalSource(tmp_path))) == {"cairn": 1, **SAID}
    assert os.listdir(tmp_path) == ["cairn.json"]


def test_a_folder_without_one_has_none() -> None:
    assert cairn_json.read(Listing.of(MemorySource({"a": b""}))) is None


def test_the_readers_take_identity_and_pieces_from_what_was_written(tmp_path: Path) -> None:
    for path, data in files_of("dcp/2d/step-5").items():
        (tmp_path / path).write_bytes(data)
    cairn_json.write(tmp_path, said(step=5, manifest=[{"path": "__9_0.distcp", "bytes": 1}], pieces={}))
    found = inspect(LocalSource(tmp_path))
    assert found.identity is not None
    assert (found.identity["id"], found.step, found.step_source) == ("ck_1", 5, "cairn.json")
    assert (found.missing, found.complete) == (("__9_0.distcp",), False)


def test_it_becomes_an_item_of_registration() -> None:
    item = cairn_json.to_item({"cairn": 1, **SAID})
    assert (item["project"], item["run"], item["attempt"], item["step"]) == ("llm", "7b-a", 2, 1000)
    assert item["state"] == "committed"
    assert item["scores"] == SAID["scores"]
    assert not {"cairn", "id", "manifest", "digest", "parents", "written_at"} & item.keys()


def test_the_same_content_again_touches_nothing(tmp_path: Path) -> None:
    place = cairn_json.write(tmp_path, SAID)
    os.utime(place, ns=(1, 1))
    cairn_json.write(tmp_path, SAID)
    assert place.stat().st_mtime_ns == 1
    cairn_json.write(tmp_path, said(step=2000))
    assert json.loads(place.read_bytes())["step"] == 2000


def test_a_write_that_fails_leaves_the_old_one_and_no_scrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cairn_json.write(tmp_path, SAID)

    def full(*_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    for name in ("write", "fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(cairn_json.os, name, full)
            with pytest.raises(OSError, match="No space"):
                cairn_json.write(tmp_path, said(step=7))
        assert os.listdir(tmp_path) == ["cairn.json"]
        assert json.loads((tmp_path / "cairn.json").read_bytes())["step"] == 1000


def test_the_file_is_durable_before_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(cairn_json.os, "fsync", lambda handle: (order.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(
        cairn_json.os, "replace", lambda *args, **more: (order.append("replace"), replace(*args, **more))[1]
    )
    cairn_json.write(tmp_path, SAID)
    assert order == ["fsync", "replace", "fsync"]


def test_a_link_of_that_name_is_replaced_and_what_it_leads_to_untouched(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = tmp_path / "ckpt"
    folder.mkdir()
    (folder / "cairn.json").symlink_to(outside)
    cairn_json.write(folder, SAID)
    assert outside.read_text() == "precious"
    assert not (folder / "cairn.json").is_symlink()


def test_a_folder_that_is_none_or_read_only_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        cairn_json.write(tmp_path / "gone", SAID)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"project": "a b"}, "project: is no project's name"),
        ({"step": -1}, "step: is no whole number from 0"),
        ({"step": True}, "step: is no whole number"),
        ({"step": 1.0}, "step: is no whole number"),
        ({"step": 2**63}, "step: is no whole number"),
        ({"attempt": 0}, "attempt: is no whole number from 1"),
        ({"kind": "big"}, "kind: is none of light, archive"),
        ({"run": "7b-a"}, "run: is no object"),
        ({"run": {}}, "run: name: is missing"),
        ({"saved_at": "2026-11-01 10:00"}, "saved_at: is no time in UTC"),
        ({"loss": float("nan")}, "loss: must be written as text"),
        ({"loss": "nan"}, "loss: is no number"),
        ({"pieces": {"weights": "maybe"}}, "pieces: weights: is none of present"),
        ({"pieces": {"wheels": "present"}}, "pieces: wheels: is not known"),
        ({"scores": [{"benchmark": "a"}]}, "scores: 0: value: is missing"),
        ({"scores": {"a": 1}}, "scores: is no list"),
        ({"parents": [{"relation": "cousin"}]}, "parents: 0: relation: is none of"),
        ({"manifest": [{"path": "../x"}]}, "manifest: 0: path: leads out of the folder"),
        ({"manifest": [{"path": "/x"}]}, "manifest: 0: path: leads out"),
        ({"manifest": [{"path": "a//b"}]}, "manifest: 0: path: leads out"),
        ({"manifest": [{"path": "a", "bytes": -1}]}, "manifest: 0: bytes: is no whole number"),
        ({"tags": {"a": "\ud800"}}, "tags: a: holds a control character or half"),
        ({"tags": {"a": "b\x00"}}, "tags: a: holds a control character"),
        ({"config": {"a": [{"b": float("inf")}]}}, "config: holds a number that is not finite"),
        ({"config": [1]}, "config: is no object"),
        ({"config": {"a": object()}}, "config: holds what JSON cannot"),
        ({"layout": {"tp": 0}}, "layout: tp: is no whole number from 1"),
        ({"colour": "blue"}, "colour: is not known"),
    ],
)
def test_what_could_not_be_read_back_is_not_written_and_told_with_its_place(
    changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(Unreadable) as caught:
        cairn_json.write(tmp_path, said(**changes))
    assert told in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("missing", ["project", "run", "attempt", "step", "kind"])
def test_identity_is_never_left_out(missing: str) -> None:
    with pytest.raises(Unreadable, match=f"{missing}: is missing"):
        cairn_json.encode({key: value for key, value in SAID.items() if key != missing})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no UTF-8"),
        (b"[]", "which version"),
        (b'{"cairn": true}', "which version"),
        (b'{"cairn": "1"}', "which version"),
        (b'{"cairn": 3}', "Update the client"),
        (b'{"cairn": 1, "project": "a", "project": "b"}', "stands twice"),
        (b'{"cairn": 1, "step": NaN}', "step"),
        (b'{"cairn": 1, "config": {"a": 1e999}}', "not finite"),
        (b'{"cairn": 1, "config": {"a": 1, "a": 2}}', "stands twice"),
        (b'{"cairn": 1, "tags": {"a": "\\ud800"}}', "surrogate"),
        (b"[" * 100_000, "nested"),
        (b'{"cairn": 1, "config": ' + b'{"a":' * 70 + b"1" + b"}" * 71, "nested"),
    ],
)
def test_content_that_is_not_of_this_shape_is_refused_with_the_reason(content: bytes, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        cairn_json.parse(content)


def test_more_than_is_read_is_refused_before_it_is_read() -> None:
    source = MemorySource({"cairn.json": b"{}"}, sizes={"cairn.json": 2**40})
    with pytest.raises(Unreadable, match="at most"):
        cairn_json.read(Listing.of(source))
    assert source.read_bytes == 0


def test_a_manifest_of_ten_thousand_files_fits(tmp_path: Path) -> None:
    files = [{"path": f"__{rank}_0.distcp", "bytes": 2**33, "digest": "blake3:" + "a" * 64} for rank in range(10_000)]
    cairn_json.write(tmp_path, said(manifest=files))
    read = cairn_json.read(Listing.of(LocalSource(tmp_path)))
    assert read is not None
    assert read["manifest"] == files
