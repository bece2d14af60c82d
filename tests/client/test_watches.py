"""Watches, findings and spikes through the client, against the real service."""

from pathlib import Path

from cairn import Client

from registry.db import Database
from registry.watches.look import look_at_due


def looks(home: Path) -> None:
    """What a thread of `cairn-server serve` does each second, which this service in process has not."""
    database = Database(f"sqlite:///{home}/cairn.db")
    look_at_due(database)
    database.dispose()


def test_a_watch_finds_a_fall_and_the_finding_opens_a_rollback(
    live: Client, project: str, service: tuple[str, Path]
) -> None:
    run = live.create_run(project, "r")
    standing = live.stand_watch(run, watch={"benchmark": "gsm8k"}, note="release")
    assert live.stand_watch(run, watch={"benchmark": "gsm8k"}).id == standing.id
    assert (standing.watched, standing.state, standing.note) == ("gsm8k", "standing", "release")
    for step, value in enumerate([0.6] * 6 + [0.4], 1):
        score = {"benchmark": "gsm8k", "metric": "exact_match", "value": value, "n_samples": 1319}
        live.register_checkpoint(run, 1000 * step, scores=[score])
    looks(service[1])
    (finding,) = live.list_findings(run=run, state=["open"]).items
    assert finding.checkpoint is not None
    assert (finding.checkpoint.step, finding.from_step, finding.kind) == (7000, 6000, "score")
    assert finding.rollback["body"] == {"run_id": run.id, "watch": {"benchmark": "gsm8k"}}
    done = live.acknowledge_finding(finding, note="seen")
    assert (done.state, done.note, live.get_finding(finding.id).acknowledged_by) == (
        *("acknowledged", "seen"),
        done.acknowledged_by,
    )
    assert [each.id for each in live.iter_findings(project=project)] == [finding.id]
    assert [each.id for each in live.list_watches(run=run)] == [standing.id]
    assert live.end_watch(standing).state == "ended"


def test_a_loss_spike_says_what_the_new_attempt_skips(live: Client, project: str) -> None:
    run = live.create_run(project, "spiked")
    pieces = dict.fromkeys(("weights", "optimizer", "data_position"), "present")
    for step in (100, 300, 400):
        copy = {"uri": f"/ckpt/{project}/{step}", "tier": "shared", "bytes": 10**9}
        live.register_checkpoint(run, step, pieces=pieces, replicas=[copy])
    values = [2.0 + 0.01 * (step % 5) for step in range(1, 451)]
    values[429:] = [6.0] * 21
    live.record_series(run, [{"name": "loss", "steps": list(range(1, 451)), "values": values}])
    answer = live.rollback(run)
    assert answer.spike is not None
    assert (answer.spike.from_step, answer.spike.rewind_to, answer.spike.recovered) == (430, 300, False)
    assert answer.spike.attempt is not None
    body = dict(answer.spike.attempt)
    attempt = live.start_attempt(run, **body)
    assert attempt.raw["skip"] == [{"from": 330, "to": 450}]
    assert attempt.raw["reason"] == "loss spike at steps 430 to 450"


def test_rolling_an_alias_back_twice_goes_two_steps_back(live: Client, project: str) -> None:
    run = live.create_run(project, "r")
    points = [live.register_checkpoint(run, step) for step in (1, 2, 3)]
    for each in points:
        live.put_alias(project, "production", each)
    steps = [live.alias_rollback(project, "production").checkpoint.step for _ in range(2)]
    assert steps == [2, 1]
    assert [each.rollback for each in live.alias_history(project, "production")] == [True, True, False, False, False]
