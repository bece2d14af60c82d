"""`cairn spool`: what waits, and sending it by hand."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cairn import Client
from cairn.spool.backlog import Backlog
from cairn.spool.flush import list_spools
from cairn.supervise.kept import Kept, Request

from tests.client.conftest import Cli
from tests.client.recorder.jobs import environment, run_job

NOBODY = "http://127.0.0.1:9"
CODE = """
run = cairn.start({project!r}, 'r', capture=False)
for step in range(1, 4):
    run.log(step, loss=1.0)
    run.saved(f'/ckpt/{{step}}', step=step, scores={scores})
"""


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def train(project: str, spool: Path, scores: str = "None") -> None:
    done = run_job(CODE.format(project=project, scores=scores), environment(NOBODY, None, spool))
    assert done.returncode == 0, done.stderr
    for left in spool.glob("*/service"):
        left.unlink()  # the same service under another address


def test_what_waits_is_listed_and_sent(live: Client, project: str, spool: Path, cli: Cli) -> None:
    assert cli("spool", "list")[0] == 1
    train(project, spool)
    code, out, err = cli("spool", "list", "--json")
    assert code == 0, err
    (one,) = json.loads(out)["spools"]
    assert (one["runs"], one["is_alive"], one["waiting"] >= 5) == ([f"{project}/r"], False, True)
    assert one["oldest_at"].endswith("Z")
    code, out, _ = cli("spool", "list")
    assert out.splitlines()[0].split("\t") == [
        *("spool", "host", "pid", "owner", "records", "runs", "oldest", "service", "why it waits")
    ]
    code, out, err = cli("spool", "flush", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["sent"], said["spools"], said["refused"], said["kept"]) == (one["waiting"], 1, 0, [])
    assert sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'")) == [1, 2, 3]
    assert cli("spool", "list")[0] == 1
    assert cli("spool", "flush")[1] == "Sent 0 records of 0 spools.\n"


def test_a_service_that_is_away_is_said_and_nothing_is_lost(
    project: str, spool: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(project, spool)
    monkeypatch.setenv("CAIRN_URL", NOBODY)
    monkeypatch.setenv("CAIRN_TOKEN", "t")
    for _ in range(2):  # a flush that fails gives the spool up for the next
        code, _, err = cli("spool", "flush")
        assert code == 3
        assert "Nobody answers" in err
    assert len(json.loads(cli("spool", "list", "--json")[1])["spools"]) == 1


def test_what_was_refused_is_listed_with_its_reason(live: Client, project: str, spool: Path, cli: Cli) -> None:
    train(project, spool, scores="[{'benchmark': 'b', 'value': 1.0, 'n_samples': -step}]")
    code, out, _ = cli("spool", "flush", "--json")
    assert code == 0
    assert json.loads(out)["refused"] == 3
    code, out, _ = cli("spool", "list", "--json")
    refused = json.loads(out)["refused"]
    assert [each["step"] for each in refused] == [1, 2, 3]
    assert {each["run"] for each in refused} == {f"{project}/r"}
    assert "step" in cli("spool", "list")[1]


RACE = """
import sys, time
from cairn import Client
from cairn.spool.flush import flush
while time.time() < float(sys.argv[1]):
    pass
with Client() as client:
    done = flush(client)
print(done.spools, done.sent, done.refused)
"""


def test_two_who_flush_at_once_send_each_spool_once(
    live: Client, project: str, spool: Path, service: tuple[str, Path]
) -> None:
    import subprocess
    import sys
    import time

    for number in range(4):
        train(f"{project[:90]}-{number}", spool)
    total = sum(each.waiting for each in list_spools())
    env, begin = environment(*service, spool), str(time.time() + 2)
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE, begin], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [[int(word) for word in each.communicate(timeout=120)[0].split()] for each in racers]
    assert [sum(column) for column in zip(*said, strict=True)] == [4, total, 0]
    assert list_spools() == []
    for number in range(4):
        found = live.iter_checkpoints(filter=f"project = '{project[:90]}-{number}'")
        assert sorted(each.step or 0 for each in found) == [1, 2, 3]


SAVED = """
run = cairn.start({project!r}, 'r', capture=False)
run.saved({path!r}, step=3)
print(run.flush(60))
run.finish()
"""


NEXT = """
run = cairn.start({project!r}, 's', capture=OFF)
run.saved(step=1)
print(run.flush(60))
ends = time.monotonic() + 60
while os.listdir(os.environ['CAIRN_SPOOL'] + '/unfinished') and time.monotonic() < ends:
    time.sleep(0.05)
"""


def half_written(tmp_path: Path) -> tuple[Path, Callable[[], object]]:
    """A folder of which one file is cut short, and what completes it."""
    source = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "dcp"
    whole = next(each.parent for each in sorted(source.rglob(".metadata")))
    place = Path(shutil.copytree(whole, tmp_path / "step-3"))
    shard = next(place.glob("*.distcp"))
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    return place, lambda: shard.write_bytes(content)


@pytest.mark.parametrize("who", ["flush", "start"])
def test_a_save_that_became_whole_after_its_process_had_ended_is_committed(
    who: str, live: Client, project: str, spool: Path, service: tuple[str, Path], tmp_path: Path, cli: Cli
) -> None:
    place, complete = half_written(tmp_path)
    done = run_job(SAVED.format(project=project, path=str(place)), environment(*service, spool))
    assert done.stdout == "True\n", done.stderr
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert live.get_checkpoint(one).state == "pending"
    code, out, _ = cli("spool", "flush", "--json")
    assert (code, json.loads(out)["committed"]) == (0, 0)
    (left,) = json.loads(cli("spool", "list", "--json")[1])["unfinished"]
    assert left == {"run": f"{project}/r", "attempt": 1, "step": 3, "paths": [str(place)], "is_gone": False}
    complete()
    if who == "flush":
        assert json.loads(cli("spool", "flush", "--json")[1])["committed"] == 1
    else:
        assert run_job(NEXT.format(project=project), environment(*service, spool)).stdout == "True\n"
    assert live.get_checkpoint(one).state == "committed"
    assert not list((spool / "unfinished").iterdir())


def test_a_save_whose_folder_has_vanished_is_never_committed(
    live: Client, project: str, spool: Path, service: tuple[str, Path], tmp_path: Path, cli: Cli
) -> None:
    place, _ = half_written(tmp_path)
    assert run_job(SAVED.format(project=project, path=str(place)), environment(*service, spool)).returncode == 0
    shutil.rmtree(place)
    assert json.loads(cli("spool", "flush", "--json")[1])["committed"] == 0
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert live.get_checkpoint(one).state == "pending"


def left_by_a_job(project: str, spool: Path, kind: str = "crashed") -> Path:
    """What `cairn exec` keeps of a job that failed while the service was away."""
    incident = {"kind": kind, "key": "i", "cause": "python-exception", "occurred_at": "2026-11-29T10:00:00Z"}
    kept = Kept(f"{project}/r", spool / "exec")
    ended = {"state": "failed", "ended_at": "2026-11-29T10:00:00Z", "exit_code": 1}
    requests = [Request("open", "k", {"command": "x"}), Request("end", "k", ended), Request("incident", "k", incident)]
    assert kept.save(requests)
    (path,) = (spool / "exec").glob("*.json")
    return path


def test_what_a_job_of_exec_could_not_send_is_listed_and_sent(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    path = left_by_a_job(project, spool)
    code, out, _ = cli("spool", "list", "--json")
    assert (code, json.loads(out)["jobs"]) == (
        0,
        [{"path": str(path), "run": f"{project}/r", "requests": 3, "service": ""}],
    )
    assert cli("spool", "list")[1].splitlines()[0].split("\t") == ["job", "run", "requests", "service"]
    code, out, err = cli("spool", "flush", "--json")
    assert (code, json.loads(out)["sent"]) == (0, 3), err
    assert not path.exists()
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert (attempt.state, attempt.raw["exit_code"]) == ("failed", 1)
    (incident,) = live.list_incidents(project=project)
    assert incident.cause == "python-exception"


def test_what_is_refused_of_a_job_of_exec_is_set_aside(live: Client, project: str, spool: Path, cli: Cli) -> None:
    path = left_by_a_job(project, spool, kind="no kind of incident")
    said = json.loads(cli("spool", "flush", "--json")[1])
    assert (said["sent"], said["refused"]) == (2, 1)
    assert not path.exists()
    (refused,) = json.loads(cli("spool", "list", "--json")[1])["refused"]
    assert (refused["kind"], refused["run"]) == ("incident", f"{project}/r")


def test_a_job_of_exec_that_did_not_say_what_it_loaded_waits_for_somebodys_word(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 100)
    path = left_by_a_job(project, spool)
    for _ in range(2):
        code, out, _ = cli("spool", "flush", "--json")
        assert (code, json.loads(out)["kept"][0]["spool"]) == (1, str(path))
    assert len(live.list_attempts(live.find_run(project, "r"))) == 1
    assert cli("spool", "flush", "--resumed-from", "100")[0] == 0
    attempt = live.list_attempts(live.find_run(project, "r"))[-1]
    assert (attempt.number, attempt.state) == (2, "failed")
    assert not path.exists()


def test_what_a_job_kept_for_another_service_is_left_alone(live: Client, project: str, spool: Path, cli: Cli) -> None:
    path = left_by_a_job(project, spool)
    path.write_text(path.read_text().replace('"service": ""', '"service": "https://one.example"'))
    code, out, _ = cli("spool", "flush", "--json")
    said = json.loads(out)
    assert (code, said["sent"], said["elsewhere"]) == (1, 0, {"https://one.example": 3})
    assert path.exists()
    assert cli("spool", "flush", "--here")[0] == 0
    assert not path.exists()


def test_a_line_that_the_disk_has_changed_is_told_of_and_kept(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    train(project, spool)
    (path,) = spool.glob("*/records-*.log")
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"step":2,', b'"step":7,', 1))
    said = json.loads(cli("spool", "flush", "--json")[1])["said"]
    assert any("has damaged a line" in each for each in said)
    (kept,) = spool.glob("refused/damaged-*")
    assert b'"step":7,' in kept.read_bytes()
    assert sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'")) == [1, 3]


def test_two_decisions_at_once_are_none(cli: Cli, spool: Path) -> None:
    assert cli("spool", "flush", "--restart", "--resumed-from", "5")[0] == 2


def test_only_the_named_spool_is_sent(live: Client, project: str, spool: Path, cli: Cli) -> None:
    train(project, spool)
    folder = next(each for each in spool.iterdir() if each.name != "refused")
    other = live.create_project(f"{project}-2").name
    train(other, spool)
    code, _, err = cli("spool", "flush", "--spool", str(folder))
    assert code == 0, err
    assert len(list(live.iter_checkpoints(filter=f"project = '{project}'"))) == 3
    assert list(live.iter_checkpoints(filter=f"project = '{other}'")) == []


def moved(project: str, spool: Path, service: str) -> str:
    """A spool for another address; which process left it."""
    train(project, spool)
    (folder,) = spool.glob("2*")
    (folder / "service").write_text(service)
    return folder.name.split("-")[-2]


def test_records_for_another_address_are_counted_and_sent_only_on_somebodys_word(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    pid = moved(project, spool, "http://127.0.0.1:8499")
    code, out, err = cli("spool", "flush")
    assert (code, out) == (1, "Sent 0 records of 0 spools.\n")
    assert f"records wait for http://127.0.0.1:8499; --here sends them to this service, {live.url}." in err
    _, row = (line.split("\t") for line in cli("spool", "list")[1].splitlines())
    assert (row[2], row[7]) == (pid, "http://127.0.0.1:8499")
    assert row[8] == f"it is not for {live.url}; `cairn spool flush --here` sends it there"
    assert cli("spool", "flush", "--here")[0] == 0
    assert sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'")) == [1, 2, 3]
    assert cli("spool", "list")[0] == 1


def test_this_machine_is_one_service_whatever_it_is_called(live: Client, project: str, spool: Path, cli: Cli) -> None:
    moved(project, spool, live.url.replace("127.0.0.1", "localhost"))
    assert cli("spool", "flush")[0] == 0
    assert cli("spool", "list")[0] == 1


def test_what_another_service_knows_already_is_told_to_this_one_from_its_start(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    """Names that the other gave mean nothing here, and where the start is gone nobody could open the attempt."""
    moved(project, spool, "http://127.0.0.1:8499")
    (folder,) = spool.glob("2*")
    begun = next(iter(Backlog(folder).records()))
    facts = {"project": project, "run": "r", "run_id": "0123456789abc", "number": 7}
    (folder / "done").write_text(json.dumps({begun.record["key"]: {"done": begun.number, "facts": facts}}))
    content = (path := next(folder.glob("records-*"))).read_bytes()
    path.write_bytes(content.replace(b'"kind":"start"', b'"kind":"tsart"'))
    code, _, err = cli("spool", "flush", "--here")
    assert code == 1
    assert "stays for http://127.0.0.1:8499" in err
    path.write_bytes(content)
    assert cli("spool", "flush", "--here")[0] == 0
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert attempt.number == 1
    assert sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'")) == [1, 2, 3]


def test_the_list_says_for_what_a_spool_waits(live: Client, project: str, spool: Path, cli: Cli) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 100)
    train(project, spool)
    _, row = (line.split("\t") for line in cli("spool", "list")[1].splitlines())
    assert row[8] == "its process has ended; `cairn spool flush` sends it"
    code, _, err = cli("spool", "flush")
    assert code == 1
    assert "began at step 1 without saying what it loaded" in err
    _, row = (line.split("\t") for line in cli("spool", "list")[1].splitlines())
    assert "began at step 1 without saying what it loaded" in row[8]
    assert row[2].isdigit()


def test_what_was_refused_can_be_sent_again(live: Client, project: str, spool: Path, cli: Cli) -> None:
    assert cli("spool", "again")[0] == 1
    train(project, spool, scores="[{'benchmark': 'b', 'value': 1.0, 'n_samples': -step}]")
    cli("spool", "flush")
    code, out, err = cli("spool", "again")
    assert (code, out) == (1, "Sent 0 records that had been refused.\n")
    assert err.count("stays: ") == 3
    for path in spool.glob("refused/*.json"):
        path.write_text(path.read_text().replace('"n_samples": -', '"n_samples": '))
    assert cli("spool", "again")[1] == "Sent 3 records that had been refused.\n"
    assert sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'")) == [1, 2, 3]
    assert not list(spool.glob("refused/*.json"))
