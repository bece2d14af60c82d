"""A save that is announced, and whose files are not whole yet when it is recorded."""

import shutil
from pathlib import Path

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine

from tests.client.background import end_background
from tests.client.conftest import Cli
from tests.client.until import LATEST, until

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
        assert run.flush(LATEST)
    run.saved(place, step=3, loss=0.5, tokens=12)
    assert run.flush(LATEST)
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert one.raw["state"] == "pending"
    shard.write_bytes(content)
    until(lambda: live.get_checkpoint(one).state != "pending")
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert (one.raw["state"], one.raw["loss"], one.raw["tokens_seen"]) == ("committed", 0.5, 12)
    assert "refused" not in caplog.text


@pytest.mark.parametrize("around", [True, False], ids=["its folder is removed", "and the folder around it"])
def test_a_save_whose_files_were_removed_is_listed_with_what_clears_it_and_cleared(
    live: Client, project: str, tmp_path: Path, cli: Cli, around: bool
) -> None:
    place = Path(shutil.copytree(FIXTURES / "hf_trainer" / "checkpoint-4", tmp_path / "out" / "checkpoint-4"))
    (place / "trainer_state.json").unlink()
    run = cairn.start(project, "r", capture=False)
    run.saved(place, step=4)
    assert run.flush(LATEST)
    end_background()
    code, out, err = cli("spool", "list")
    assert code == 0, err
    assert f"{project}/r\t1\t4\t{place}\t`cairn spool flush` looks whether it is whole" in out
    assert cli("spool", "flush")[0] == 0
    assert cli("spool", "list")[0] == 0  # it is there, and looked at again
    shutil.rmtree(place if around else place.parent)
    word = [] if around else ["--forget"]
    assert " ".join(["`cairn spool flush", *word]) + "` forgets it" in cli("spool", "list")[1]
    if not around:
        assert "Forgot" not in cli("spool", "flush")[1]  # storage that is not mounted looks the same
    assert "Forgot 1 save whose files are gone" in cli("spool", "flush", *word)[1]
    assert cli("spool", "list")[0] == 1
