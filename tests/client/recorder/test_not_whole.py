"""A save that is announced, and whose files are not whole yet when it is recorded."""

import shutil
import time
from pathlib import Path

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"


@pytest.mark.parametrize("apart", [True, False], ids=["sent one by one", "sent together"])
def test_a_save_that_was_announced_and_is_not_whole_is_not_refused_and_loses_nothing(
    live: Client,
    project: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    apart: bool,
) -> None:
    monkeypatch.setattr(engine, "UNFINISHED_SECONDS", 0.0)
    whole = next(each.parent for each in sorted((FIXTURES / "dcp").rglob(".metadata")))
    place = Path(shutil.copytree(whole, tmp_path / "step-3"))
    shard = next(place.glob("*.distcp"))
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])  # an asynchronous save still writes
    run = cairn.start(project, "r", capture=False)
    assert isinstance(run, Recorder)
    run.saving(3)
    if apart:
        assert run.flush(20)
    run.saved(place, step=3, loss=0.5, tokens=12)
    assert run.flush(20)
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert one.raw["state"] == "pending"
    shard.write_bytes(content)
    deadline = time.monotonic() + 20
    while one.raw["state"] == "pending" and time.monotonic() < deadline:
        time.sleep(0.05)
        (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert (one.raw["state"], one.raw["loss"], one.raw["tokens_seen"]) == ("committed", 0.5, 12)
    assert "refused" not in caplog.text
