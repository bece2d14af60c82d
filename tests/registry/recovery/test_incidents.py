"""Faults that other tools were reported to have with failing and resuming, each as a claim of what happens here."""

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from registry.db import now
from registry.incidents.ledger import amend_incident, open_incident
from registry.incidents.queries import Asked, list_incidents
from registry.incidents.receipts import BadReceipt, NewReceipt, confirmations, record_receipt
from registry.incidents.shapes import IncidentRow, NewIncident
from registry.incidents.suspicion import advise, say_suspect, suspect_copies_of, suspects_of
from registry.models import Checkpoint, Replica
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.types import PieceName
from tests.factories import ALL_PIECES, make_attempt, make_checkpoint, make_run
from tests.registry.incidents.steps import beats, look

ALL_RESTORED = dict.fromkeys(PieceName, "restored")


def fails_after(session: Session, run: RunRow, loaded: int, **known: object) -> IncidentRow:
    """An attempt that loads this checkpoint and dies before it has saved anything."""
    attempt = make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    told = {"cause": "python-exception", "evidence": ["RuntimeError: unexpected EOF"], "exit_code": 1} | known
    new = NewIncident(kind="crashed", attempt=attempt.number, **told)  # type: ignore[arg-type]
    return open_incident(session, run.id, new, actor="exec")[0]


def copies_of(session: Session, checkpoint_id: int) -> dict[str, int]:
    rows = session.query(Replica).filter_by(checkpoint_id=checkpoint_id)
    return {row.tier: row.id for row in rows}


# A corrupt local copy was loaded 44 times in a row.


def test_a_checkpoint_after_which_two_attempts_failed_alike_is_suspect_and_an_older_one_is_advised(
    session: Session,
) -> None:
    run = make_run(session)
    older, loaded = (make_checkpoint(session, run, step, pieces=ALL_PIECES) for step in (100, 200))
    assert fails_after(session, run, loaded).checkpoint_id == loaded
    assert suspects_of(session, [older, loaded]) == {}
    fails_after(session, run, loaded)
    found = suspects_of(session, [older, loaded])
    assert list(found) == [loaded]
    assert found[loaded].reason.startswith("2 attempts that loaded it failed alike before they had saved anything")
    instead = advise(session, found[loaded])
    assert instead is not None
    assert (instead.checkpoint_id, instead.step) == (older, 100)


def test_where_one_copy_was_loaded_each_time_the_next_tier_is_advised(session: Session) -> None:
    from registry.checkpoints.registration import ReplicaSpec

    run = make_run(session)
    both = (ReplicaSpec("/nvme/step-200", "local", host="n1"), ReplicaSpec("/shared/step-200", "shared"))
    loaded = make_checkpoint(session, run, 200, replicas=both)
    copies = copies_of(session, loaded)
    for _ in range(2):
        fails_after(session, run, loaded, checkpoint_id=loaded, replica_id=copies["local"])
    assert suspects_of(session, [loaded]) == {}
    suspect = suspect_copies_of(session, [loaded])
    assert list(suspect) == [copies["local"]]
    instead = advise(session, suspect[copies["local"]])
    assert instead is not None
    assert (instead.replica_id, instead.uri) == (copies["shared"], "/shared/step-200")
    fails_after(session, run, loaded, checkpoint_id=loaded, replica_id=copies["shared"])
    assert list(suspects_of(session, [loaded])) == [loaded]


def test_a_failure_that_follows_the_job_to_another_checkpoint_clears_both(session: Session) -> None:
    run = make_run(session)
    older, loaded = (make_checkpoint(session, run, step) for step in (100, 200))
    fails_after(session, run, loaded)
    fails_after(session, run, loaded)
    fails_after(session, run, older)
    fails_after(session, run, older)
    assert suspects_of(session, [older, loaded]) == {}


OUTSIDE = ["preemption", "power", "nccl-timeout", "user-interrupt", "scheduler-limit", "gpu-memory", "host-memory"]


@pytest.mark.parametrize("cause", OUTSIDE)
def test_what_strikes_from_outside_makes_no_checkpoint_suspect(session: Session, cause: str) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    for _ in range(3):
        fails_after(session, run, loaded, cause=cause)
    assert suspects_of(session, [loaded]) == {}


@pytest.mark.parametrize("cause", ["nan-loss", "corrupt-checkpoint", "storage-io", "unknown"])
def test_what_may_come_from_what_was_loaded_makes_it_suspect(session: Session, cause: str) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    for _ in range(2):
        fails_after(session, run, loaded, cause=cause)
    assert list(suspects_of(session, [loaded])) == [loaded]


def test_a_cause_from_outside_that_a_person_names_later_lifts_the_suspicion(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    for _ in range(2):
        fails_after(session, run, loaded, cause="unknown")
    assert list(suspects_of(session, [loaded])) == [loaded]
    newest = list_incidents(session, Asked(run_id=run.id))[0]
    amend_incident(session, newest.id, {"cause": "gpu-memory"}, actor="maria")
    assert suspects_of(session, [loaded]) == {}


def test_an_attempt_that_saved_something_had_loaded_well(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    for step in (300, 310):
        attempt = make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
        make_checkpoint(session, run, step, attempt=attempt.number)
        new = NewIncident(kind="crashed", attempt=attempt.number, cause="nan-loss", evidence=["loss is nan"])
        open_incident(session, run.id, new, actor="exec")
    assert suspects_of(session, [loaded]) == {}


def test_failures_that_are_not_alike_make_no_suspect(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    fails_after(session, run, loaded)
    fails_after(session, run, loaded, evidence=["KeyError: 'lr'"])
    assert suspects_of(session, [loaded]) == {}


def test_numbers_in_the_line_that_says_it_do_not_make_failures_differ(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    for rank in (3, 17):
        fails_after(session, run, loaded, evidence=[f"rank {rank}: RuntimeError: bad magic at 0x{rank:x}f"])
    assert list(suspects_of(session, [loaded])) == [loaded]


def test_a_person_s_word_counts_until_further_incidents_add_to_it(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    checkpoint = session.get_one(Checkpoint, loaded)
    say_suspect(session, checkpoint, suspect=True, reason="looked odd", actor="maria")
    assert suspects_of(session, [loaded])[loaded].reason == "looked odd"
    say_suspect(session, checkpoint, suspect=False, reason="it was not", actor="maria")
    assert suspects_of(session, [loaded]) == {}
    fails_after(session, run, loaded)
    fails_after(session, run, loaded)
    say_suspect(session, checkpoint, suspect=False, reason="it was the driver", actor="maria")
    assert suspects_of(session, [loaded]) == {}
    fails_after(session, run, loaded)
    assert suspects_of(session, [loaded])[loaded].incidents == 3


# Loading the optimizer was a no-op.


def test_an_attempt_that_resumed_is_unconfirmed_until_a_receipt_says_what_it_restored(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    assert confirmations(session, run.project_id, run.id) == {}
    receipt, made = record_receipt(session, run.id, NewReceipt(pieces=ALL_RESTORED, restore_seconds=41.5))
    assert (receipt.loaded.checkpoint_id, receipt.attempt, made) == (loaded, 2, True)
    assert record_receipt(session, run.id, NewReceipt(pieces=ALL_RESTORED, restore_seconds=41.5))[1] is False
    confirmed = confirmations(session, run.project_id, run.id)[2]
    assert (confirmed.state, confirmed.restore_seconds, confirmed.receipts) == ("confirmed", 41.5, 1)


def test_of_several_receipts_the_worst_word_on_each_piece_counts(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    record_receipt(session, run.id, NewReceipt(pieces=ALL_RESTORED, note="rank 0"))
    record_receipt(session, run.id, NewReceipt(pieces=ALL_RESTORED | {PieceName.OPTIMIZER: "fresh"}, note="rank 1"))
    found = confirmations(session, run.project_id, run.id)[2]
    assert (found.state, found.pieces[PieceName.OPTIMIZER], found.receipts) == ("partial", "fresh", 2)


def test_a_receipt_that_does_not_know_a_piece_confirms_nothing(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=make_checkpoint(session, run, 200)))
    record_receipt(session, run.id, NewReceipt(pieces={PieceName.WEIGHTS: "restored"}))
    assert confirmations(session, run.project_id, run.id)[2].state == "unconfirmed"


def test_a_receipt_is_kept_before_the_record_of_what_was_loaded_arrives(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    receipt, _ = record_receipt(
        session, run.id, NewReceipt(ResumePoint(run="elsewhere", attempt=1, step=900), attempt_key="a")
    )
    assert (receipt.loaded.checkpoint_id, receipt.loaded.run, receipt.loaded.step) == (None, "elsewhere", 900)


def test_a_receipt_of_nothing_that_is_known_is_refused(session: Session) -> None:
    run = make_run(session)
    with pytest.raises(BadReceipt, match="no attempt yet"):
        record_receipt(session, run.id, NewReceipt(ResumePoint(step=5)))
    make_attempt(session, run, key="a")
    with pytest.raises(BadReceipt, match="did not say what it loaded"):
        record_receipt(session, run.id, NewReceipt())
    with pytest.raises(BadReceipt, match="no such checkpoint"):
        record_receipt(session, run.id, NewReceipt(ResumePoint(checkpoint_id=7)))
    with pytest.raises(BadReceipt, match="no attempt 9"):
        record_receipt(session, run.id, NewReceipt(ResumePoint(step=5), attempt=9))


# The host died with its supervisor, so nobody recorded the failure; a hang is not an exit.


def test_a_host_that_died_with_its_supervisor_is_noticed_by_the_service(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 200)
    attempt = make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    beats(session, run, attempt, now() - timedelta(hours=1), [201, 202, 203])
    (incident,) = look(session)
    assert (incident.kind, incident.steps_lost, incident.checkpoint_id) == ("lost", 3, loaded)


def test_a_hang_that_does_not_exit_is_noticed_by_the_steps_that_stop(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(minutes=2), [1, 2, 3, 4, 4, 4, 4, 4, 4])
    (incident,) = look(session, last + timedelta(seconds=1))
    assert (incident.kind, incident.last_step) == ("stalled", 4)
