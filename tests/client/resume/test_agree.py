"""All hosts of a launch load the same checkpoint, and none goes on before all can read it."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, ConnectionFailed, Retries
from cairn.resume import Choice, Launch, NothingToResume, choose
from cairn.types import Run

from tests.client.conftest import Cli
from tests.client.resume.test_resume import Saver, name


@pytest.fixture
def saver(live: Client, project: str, tmp_path: Path) -> Saver:
    return Saver(live, live.create_run(project, "7b"), tmp_path / "shared")


def launch(host: str, hosts: int = 2, wait: float = 60.0, key: str = "job-1") -> Launch:
    return Launch(key, hosts, host, wait_seconds=wait, poll_seconds=0.05)


def together(client: Client, run: Run, launches: list[Launch], **known: Any) -> list[Choice | Exception]:
    """What each host gets, all of them asking at once."""
    found: dict[str, Choice | Exception] = {}

    def ask(one: Launch) -> None:
        try:
            found[one.host] = choose(client, run, launch=one, **known)
        except Exception as fault:
            found[one.host] = fault

    threads = [threading.Thread(target=ask, args=(one,)) for one in launches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return [found[one.host] for one in launches]


def test_every_host_gets_the_same_and_knows_that_all_are_ready(live: Client, saver: Saver) -> None:
    saver.save(1000)
    newest = saver.save(2000)
    answers = together(live, saver.run, [launch(f"n{place}", hosts=4) for place in range(4)])
    for each in answers:
        assert isinstance(each, Choice)
        assert each.path == str(newest)
        assert each.agreed_by == ("n0", "n1", "n2", "n3")


def test_a_checkpoint_saved_meanwhile_changes_nothing_for_the_launch(live: Client, saver: Saver) -> None:
    saver.save(1000)
    first = choose(live, saver.run, launch=launch("a", hosts=1))
    saver.save(2000)
    again = choose(live, saver.run, launch=launch("a", hosts=1))
    assert (first.step, again.step) == (1000, 1000)
    assert choose(live, saver.run, launch=launch("a", hosts=1, key="job-2")).step == 2000


def test_what_one_host_cannot_read_is_loaded_by_none(
    live: Client, saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cairn.resume.choosing as module
    from cairn.resume.reach import Reach

    older, newest = saver.save(1000), saver.save(2000)
    real = module.reach

    def seen_from(copy: Any, host: str, client: Client) -> Reach:
        if host == "blind" and copy.uri == str(newest):
            return Reach(copy.uri, "stale file handle")
        return real(copy, host, client)

    monkeypatch.setattr(module, "reach", seen_from)
    for answer in together(live, saver.run, [launch("sees"), launch("blind")]):
        assert isinstance(answer, Choice)
        assert answer.path == str(older)


def test_a_host_that_can_read_nothing_stops_them_all(
    live: Client, saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cairn.resume.choosing as module
    from cairn.resume.reach import Reach

    saver.save(1000)
    real = module.reach

    def seen_from(copy: Any, host: str, client: Client) -> Reach:
        return Reach(copy.uri, "no such mount") if host == "blind" else real(copy, host, client)

    monkeypatch.setattr(module, "reach", seen_from)
    answers = together(live, saver.run, [launch("sees", wait=2.0), launch("blind")])
    assert all(isinstance(each, NothingToResume) for each in answers)


def test_a_host_that_never_comes_is_not_waited_for_for_ever(live: Client, saver: Saver) -> None:
    saver.save(1000)
    with pytest.raises(NothingToResume, match="1 of 3 hosts"):
        choose(live, saver.run, launch=launch("a", hosts=3, wait=0.2))


def test_what_was_agreed_on_and_is_gone_needs_a_new_key(live: Client, saver: Saver) -> None:
    saver.save(1000)
    newest = saver.save(2000)
    assert choose(live, saver.run, launch=launch("a", hosts=1)).step == 2000
    shutil.rmtree(newest)
    with pytest.raises(NothingToResume, match="key of its own"):
        choose(live, saver.run, launch=launch("a", hosts=1))
    assert choose(live, saver.run, launch=launch("a", hosts=1, key="job-2")).step == 1000


def test_without_the_registry_hosts_cannot_agree(tmp_path: Path) -> None:
    with (
        Client("http://127.0.0.1:9", "token", timeout=1, retries=Retries(count=0)) as client,
        pytest.raises(ConnectionFailed, match="only through the registry"),
    ):
        choose(client, "llm/7b", local_roots=[str(tmp_path)], launch=launch("a"))


def test_the_command_agrees(cli: Cli, saver: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = saver.save(1000)
    code, out, _ = cli("resume", "--run", name(saver), "--agree", "job-9.0", "--hosts", "1")
    assert (code, out) == (0, f"{newest}\n")
    code, out, err = cli("resume", "--run", name(saver), "--agree", "job-9.0", "--hosts", "2", "--wait", "1s")
    assert (code, out) == (1, "")
    assert "was said to have 1 hosts" in err
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CAIRN_TOKEN", "t")
    assert cli("resume", "--run", name(saver), "--agree", "k", "--hosts", "2", "--local-root", "/")[:2] == (3, "")
