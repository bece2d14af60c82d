"""Elastic jobs: workers that form anew are another attempt."""

import re
from pathlib import Path

import pytest
from cairn import Client, ConnectionFailed, Retries
from cairn.supervise.reporter import Reporter
from cairn.supervise.tail import Tail

from tests.client.supervise.jobs import attempts, incidents, run, script


def away(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CAIRN_URL", url)
    monkeypatch.setenv("CAIRN_TOKEN", "t" * 20)


FORMED = """torch.distributed.elastic.agent.server.api: [INFO] [default] Rendezvous complete for workers. Result:
  restart_count={count}
  master_addr=n1
  master_port=29500
  group_rank=0
  group_world_size={agents}
  local_ranks=[0, 1]
  role_world_sizes=[{size}, {size}]
  global_ranks=[0, 1]
  global_world_sizes=[{size}, {size}]
"""


def test_workers_that_form_anew_are_another_attempt_with_the_new_layout(live: Client, project: str, home: Path) -> None:
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    first, second = FORMED.format(count=0, agents=2, size=4), FORMED.format(count=1, agents=1, size=2)
    text = f"""
import time
from cairn import Client
def wait_for(number, step):  # until the service has been told
    while (told := client.list_attempts(run)[-1]).number != number or told.raw["step"] != step:
        time.sleep(0.05)
with Client() as client:
    run = client.find_run({project!r}, "r")
    print({first!r})
    print("step 130 | loss 2")
    wait_for(2, 130)
    print("NVRM: Xid (PCI:0000:0f:00): 79, pid=2271, GPU has fallen off the bus.")
    print({second!r})
    wait_for(3, None)
    print("step 101 | loss 2")
    wait_for(3, 101)
"""
    assert run(project, "--resumed-from", loaded.id, job=script(home, text)).returncode == 0
    _, before, after = attempts(live, project)
    assert (before.state, after.state) == ("stopped", "finished")
    assert after.key == f"{before.key}-r1"
    assert after.raw["resumed_from"]["step"] == 100
    assert "assumed" in after.raw["reason"]
    (incident,) = incidents(live, project)
    assert (incident.kind, incident.cause, incident.attempt) == ("reformed", "gpu-off-bus", 2)
    assert (incident.steps_lost, incident.state) == (30, "recovered")


def test_a_formation_that_is_read_late_is_told_with_the_steps_before_it(live: Client, project: str, home: Path) -> None:
    """The service was away when the workers met, who have made a step of their own since."""
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    first, second = FORMED.format(count=0, agents=2, size=4), FORMED.format(count=1, agents=1, size=2)
    reporter, tail = Reporter(f"{project}/r", print), Tail()
    reporter.begin("k", {"resumed_from": loaded.id}, tail)
    tail.add(1, f"{first}step 130 | loss 2\n{second}step 101 | loss 2\n".encode())
    with Client("http://127.0.0.1:9", "t", retries=Retries(count=0)) as nobody:
        reporter.sending._client = nobody
        with pytest.raises(ConnectionFailed):
            reporter._round()
    reporter.sending._client = live
    reporter._round()
    _, before, after = attempts(live, project)
    assert (before.state, before.raw["step"]) == ("stopped", 130)
    assert (after.key, after.raw["step"]) == ("k-r1", 101)
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.steps_lost) == (2, 30)
    reporter.end({"state": "finished"}, None)
    reporter._round()
    assert [each.state for each in attempts(live, project)[1:]] == ["stopped", "finished"]


def test_the_size_of_a_torchrun_job_is_its_first_layout(live: Client, project: str, home: Path) -> None:
    job = [*script(home, "print('here')"), "torchrun", "--nnodes", "2", "--nproc-per-node=8"]
    run(project, job=job)
    assert re.search("nnodes 2", attempts(live, project)[0].raw["command"])
