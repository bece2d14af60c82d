"""Checkpoints in a real object store and behind HTTP: listings and ranges, never whole shards."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cairn import Client
from cairn.digests import digest_tree, verify_tree
from cairn.errors import BadSettings
from cairn.formats.checkpoints import LocalSource, Unreadable, inspect
from cairn.scan import compare, register, scan
from cairn.stores import StoreSource, is_url, open_source
from cairn.watch import Watched, Watcher

from tests.client.object_store import BUCKET, PUBLIC, ObjectStore, running_object_store
from tests.client.scan.trees import fixture, safetensors, trainer


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def s3(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The store as a user's environment names it."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


def test_a_prefix_is_listed_with_sizes_and_times(s3: ObjectStore) -> None:
    s3.put({"list/step-1/a.bin": b"12345", "list/step-1/sub/b, c=1.bin": b"", "list/step-10/x": b"1"})
    files, problems = StoreSource(f"s3://{BUCKET}/list/step-1").listed()
    assert {(each.path, each.bytes) for each in files} == {("a.bin", 5), ("sub/b, c=1.bin", 0)}
    assert all(each.modified_at is not None and each.modified_at > 1.7e9 for each in files)
    assert problems == []


def test_ranges_end_where_the_object_does(s3: ObjectStore) -> None:
    s3.put({"ranges/x": b"0123456789"})
    source = StoreSource(f"s3://{BUCKET}/ranges")
    assert source.read("x", 2, 3) == b"234"
    assert source.read("x", 8, 100) == b"89"
    assert source.read("x", 10, 5) == b""
    answers = source.read_many([("x", 0, 1), ("gone", 0, 1), ("x", 9, 1)])
    assert (answers[0], answers[2]) == (b"0", b"9")
    assert isinstance(answers[1], Unreadable)


def test_one_object_is_a_source_too(s3: ObjectStore) -> None:
    s3.put({"single/epoch=0-step=4.ckpt": b"abc"})
    source = StoreSource(f"s3://{BUCKET}/single/epoch=0-step=4.ckpt")
    files, _ = source.listed()
    assert [(each.path, each.bytes) for each in files] == [("epoch=0-step=4.ckpt", 3)]
    assert source.read("epoch=0-step=4.ckpt", 1, 2) == b"bc"


@pytest.mark.parametrize("name", ["hf_trainer/checkpoint-4", "dcp/fsdp2/step-20", "safetensors_sharded"])
def test_what_is_said_of_a_checkpoint_is_the_same_as_on_disk(name: str, s3: ObjectStore, tmp_path: Path) -> None:
    folder = fixture(name, tmp_path / Path(name).name)
    s3.put_tree(folder, f"same/{name}")
    here, there = inspect(LocalSource(folder)), inspect(open_source(f"s3://{BUCKET}/same/{name}"))
    assert there.having(root=here.root) == here


def test_googles_storage_is_read_in_its_own_words(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Google's XML interface is that of S3 in all that a reader asks: its client is tried against the same server."""
    monkeypatch.setenv("GOOGLE_BASE_URL", store.endpoint)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    folder = fixture("dcp/fsdp2/step-20", tmp_path / "exp, 1=a/step-20")
    store.put_tree(tmp_path, "tree", PUBLIC)
    source = open_source(f"gs://{PUBLIC}/tree/exp, 1=a/step-20")
    here, there = inspect(LocalSource(folder)), inspect(source)
    assert there.having(root=here.root) == here
    assert digest_tree(source) == digest_tree(folder)
    with scan(f"gs://{PUBLIC}/tree", project="p", settle_seconds=0) as plan:
        assert [(each["step"], each["uri"]) for each in plan.items()] == [(20, source.name)]
    with pytest.raises(Unreadable, match=r"refuses access.*GOOGLE_APPLICATION_CREDENTIALS"):
        open_source(f"gs://{BUCKET}/tree").listed()


def test_a_watcher_records_what_appears_in_a_bucket_once(
    s3: ObjectStore, live: Client, project: str, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/watched"
    watched = Watched(root, project, "r", tier="object", quiet_seconds=0.0)

    def look() -> list[str]:
        with Watcher(watched, tmp_path / "state" / "watch.db") as watcher:
            return [event.kind for event in watcher.look(live)]

    assert look() == []
    folder = fixture("dcp/fsdp2/step-20", tmp_path / "step-20")
    s3.put_tree(folder, "watched/step-20")
    assert look() == ["recorded"]
    assert look() == []
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    kept = live.get_checkpoint(found)
    assert (kept.step, kept.state, kept.replicas[0]["uri"]) == (20, "committed", f"{root}/step-20")


def test_shards_are_never_read_whole(s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = safetensors(tmp_path / "model.safetensors")
    content = path.read_bytes()
    large = content.replace(
        b'"shape": [2, 2], "data_offsets": [0, 16]', b'"shape":[3000000],"data_offsets":[0,12000000]'
    )
    head = int.from_bytes(content[:8], "little") + len(large) - len(content)
    s3.put({"large/step-5/model.safetensors": head.to_bytes(8, "little") + large[8:-16] + bytes(12_000_000)})
    read = 0
    reading = StoreSource.read

    def counted(source: StoreSource, path: str, offset: int, length: int) -> bytes:
        nonlocal read
        data = reading(source, path, offset, length)
        read += len(data)
        return data

    monkeypatch.setattr(StoreSource, "read", counted)
    found = inspect(open_source(f"s3://{BUCKET}/large/step-5"))
    assert (found.parameter_count, found.step, found.complete) == (3_000_000, 5, True)
    assert 0 < read < 300_000


def test_digests_of_a_stores_objects_are_those_of_the_files(s3: ObjectStore, tmp_path: Path) -> None:
    folder = fixture("hf_trainer/checkpoint-4", tmp_path / "checkpoint-4")
    s3.put_tree(folder, "digest/checkpoint-4")
    here, there = digest_tree(folder), digest_tree(open_source(f"s3://{BUCKET}/digest/checkpoint-4"))
    assert there == here
    s3.put({"digest/checkpoint-4/config.json": b"{ }"})
    problems = verify_tree(open_source(f"s3://{BUCKET}/digest/checkpoint-4"), here.files)
    assert [each.path for each in problems] == ["config.json"]


def test_a_bucket_is_scanned_and_recorded(s3: ObjectStore, live: Client, project: str, tmp_path: Path) -> None:
    trainer(tmp_path / "exp1/checkpoints/checkpoint-10", 10)
    trainer(tmp_path / "exp1/checkpoints/checkpoint-20", 20)
    fixture("dcp/fsdp2/step-20", tmp_path / "exp2/step-20")
    fixture("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt", tmp_path / "exp3/epoch=0-step=4.ckpt")
    s3.put_tree(tmp_path, "tree")
    root = f"s3://{BUCKET}/tree"
    with scan(root, project=project, settle_seconds=0) as plan:
        compare(plan, live)
        assert register(plan, live) == 4
        uris = {(each["run"], each["step"]): each["uri"] for each in plan.items()}
        assert list(plan.problems()) == []
    assert uris == {
        ("exp1", 10): f"{root}/exp1/checkpoints/checkpoint-10",
        ("exp1", 20): f"{root}/exp1/checkpoints/checkpoint-20",
        ("exp2", 20): f"{root}/exp2/step-20",
        ("exp3", 4): f"{root}/exp3/epoch=0-step=4.ckpt",
    }
    with scan(root, project=project, settle_seconds=0) as plan:
        compare(plan, live)
        assert dict(plan.counts()) == {"known": 4}
    (copy,) = live.get_checkpoint(next(live.iter_checkpoints(filter=f"project = '{project}'", limit=1))).replicas
    assert copy["tier"] == "object"


def test_what_is_not_there_and_what_is_refused_say_so(s3: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable, match="no object itself"):
        StoreSource(f"s3://{BUCKET}/nowhere").listed()
    with pytest.raises(Unreadable, match="no such object or bucket"):
        StoreSource("s3://no-bucket/nowhere").listed()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Unreadable, match="refuses access") as refused:
        StoreSource(f"s3://{BUCKET}/list").listed()
    assert "wrong" not in str(refused.value)


def test_a_url_with_a_secret_in_it_is_refused() -> None:
    for url in ("https://host/x?X-Amz-Signature=abc123", "https://user:abc123@host/x", "s3://bucket/x#abc123"):
        with pytest.raises(Unreadable) as refused:
            open_source(url)
        assert "abc123" not in str(refused.value)


def test_paths_of_this_machine_stay_there(tmp_path: Path) -> None:
    assert isinstance(open_source(str(tmp_path)), LocalSource)
    assert not is_url("/s3://x")
    assert not is_url("C:/x")
    assert is_url("S3://bucket/x")


def test_a_missing_library_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore.exceptions", None)
    with pytest.raises(BadSettings, match=r"pip install 'cairn-client\[stores\]'"):
        open_source("s3://bucket/x")


class _Ranges(BaseHTTPRequestHandler):
    """A server of single files with ranges, and none of anything else."""

    protocol_version = "HTTP/1.1"
    contents: ClassVar[dict[str, bytes]]
    asked: ClassVar[list[str]]
    with_ranges = True

    def do_HEAD(self) -> None:
        self._answer(self.contents.get(self.path, b""), head=True)

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Range", "everything"))
        self._answer(self.contents.get(self.path, b""), head=False)

    def _answer(self, content: bytes, *, head: bool) -> None:
        status, span, said = 200 if self.path in self.contents else 404, content, self.headers.get("Range")
        if said and status == 200 and self.with_ranges:
            first, _, last = said.removeprefix("bytes=").partition("-")
            span, status = content[int(first) : int(last) + 1], 206
        self.send_response(status)
        if status == 206 and said:
            self.send_header("Content-Range", f"{said.replace('=', ' ')}/{len(content)}")
        self.send_header("Content-Length", str(len(span)))
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if not head:
            self.wfile.write(span)

    def log_message(self, *arguments: Any) -> None:
        """Nothing: the test's output is for its failures."""


@pytest.fixture
def http() -> Iterator[tuple[str, type[_Ranges]]]:
    handler = type("Handler", (_Ranges,), {"contents": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_behind_http_is_read_by_ranges(http: tuple[str, type[_Ranges]], tmp_path: Path) -> None:
    url, handler = http
    path = fixture("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt", tmp_path / "epoch=0-step=4.ckpt")
    handler.contents["/ckpt/epoch=0-step=4.ckpt"] = path.read_bytes()
    here, there = inspect(LocalSource(path)), inspect(open_source(f"{url}/ckpt/epoch=0-step=4.ckpt"))
    assert there.having(root=here.root) == here
    assert handler.asked
    assert "everything" not in handler.asked


def test_a_folder_behind_http_cannot_be_listed_and_that_is_said(http: tuple[str, type[_Ranges]]) -> None:
    url, _ = http
    with pytest.raises(Unreadable, match="HTTP has no listing"):
        StoreSource(f"{url}/ckpt/step-5").listed()
    with pytest.raises(Unreadable, match="Scan a list of its URLs"), scan(f"{url}/ckpt", project="p"):
        pass


def test_a_server_without_ranges_is_an_error_and_no_download(http: tuple[str, type[_Ranges]]) -> None:
    url, handler = http
    handler.contents["/x.gguf"] = b"GGUF" + bytes(1000)
    handler.with_ranges = False
    with pytest.raises(Unreadable, match=r"x\.gguf"):
        StoreSource(f"{url}/x.gguf").read("x.gguf", 0, 4)
