"""Azure's storage, as its maker's own emulator answers: only where that is installed (`npm install -g azurite`)."""

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
import urllib3
from cairn.digests import digest_tree
from cairn.formats.checkpoints import LocalSource, Unreadable, inspect
from cairn.scan import scan
from cairn.stores import open_source

from tests.client.object_store import BUCKET, objects_below
from tests.client.scan.trees import fixture
from tests.ports import held_port

READY_SECONDS = 60
# Of every installation of the emulator, as documented: nobody's secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The emulator with one container, as a user's environment names it."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azurite is not installed (npm install -g azurite)")
    with held_port() as port:
        yield from _running(program, port, monkeypatch, tmp_path)


def _running(program: str, port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"]
    command += ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        _make_container(endpoint)
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        yield
    finally:
        process.kill()
        process.wait()


def _make_container(endpoint: str) -> None:
    """As soon as it answers; obstore makes none."""
    date, version = formatdate(usegmt=True), "2021-12-02"
    signed = (
        f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    )
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers = {"x-ms-date": date, "x-ms-version": version, "Content-Length": "0"}
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            url = f"{endpoint}/{BUCKET}?restype=container"
            assert urllib3.request("PUT", url, headers=headers, retries=False).status == 201
        except urllib3.exceptions.HTTPError:
            assert time.monotonic() < deadline, "Azurite did not start"
            time.sleep(0.1)
        else:
            return


def test_azures_storage_is_read_by_listings_and_ranges(
    azure: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fixture("dcp/fsdp2/step-20", tmp_path / "exp, 1=a/step-20")
    _put(objects_below(tmp_path / "exp, 1=a", "tree/exp, 1=a"))
    source = open_source(f"az://{BUCKET}/tree/exp, 1=a/step-20")
    here, there = inspect(LocalSource(folder)), inspect(source)
    assert there.having(root=here.root) == here
    assert digest_tree(source) == digest_tree(folder)
    in_full = f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net/tree/exp, 1=a/step-20"
    assert inspect(open_source(in_full)).having(root=here.root) == here
    with scan(f"az://{BUCKET}/tree", project="p", settle_seconds=0) as plan:
        assert [(each["step"], each["uri"]) for each in plan.items()] == [(20, source.name)]
    with pytest.raises(Unreadable, match="no such object or bucket"):
        open_source("az://no-container/x").listed()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=")
    with pytest.raises(Unreadable, match=r"refuses access.*AZURE_STORAGE_ACCOUNT_KEY"):
        open_source(f"az://{BUCKET}/tree").listed()


def _put(objects: dict[str, bytes]) -> None:
    import obstore
    from obstore.store import AzureStore

    store = AzureStore(BUCKET, client_options={"allow_http": True})
    for key, content in objects.items():
        obstore.put(store, key, content)
