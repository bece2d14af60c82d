"""Opening, completing, closing: one incident for one interruption, however many report it."""

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from registry.attempts import amend_attempt, get_attempt
from registry.db import now
from registry.incidents.causes import CAUSES
from registry.incidents.ledger import amend_incident, open_incident
from registry.incidents.queries import Asked, count_by_cause, get_incident, list_incidents, summarise
from registry.incidents.shapes import BadIncident, IncidentNotFound, IncidentRow, IncidentStillOpen, NewIncident
from registry.models import OutboxEvent
from registry.resume_points import ResumePoint
from registry.runs import RunNotFound, RunRow
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run
from tests.registry.incidents.steps import beats, incidents_of, look


def opened(session: Session, run: RunRow, **known: object) -> IncidentRow:
    return open_incident(session, run.id, NewIncident(**known), actor="sam")[0]  # type: ignore[arg-type]


def test_steps_lost_count_from_the_last_committed_save_to_the_last_known_step(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    make_checkpoint(session, run, 1000)
    make_checkpoint(session, run, 1100, state="pending")
    beats(session, run, attempt, now() - timedelta(minutes=1), [1120, 1140])
    assert opened(session, run, attempt=1).steps_lost == 140
    assert opened(session, run, attempt=1, step=1150).steps_lost == 150
    told = opened(session, run, attempt=1, step=1150, steps_lost=7)
    assert (told.steps_lost, told.steps_lost_said) == (7, True)


def test_steps_lost_before_the_first_save_count_from_what_was_loaded(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 1000)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    incident = opened(session, run, attempt=2, step=1030)
    assert (incident.steps_lost, incident.checkpoint_id) == (30, loaded)


def test_where_the_last_step_is_not_known_the_loss_is_not_known_either(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    assert opened(session, run, attempt=1).steps_lost is None


def test_a_save_that_is_recorded_late_makes_the_loss_smaller(session: Session) -> None:
    run, struck = make_run(session), now() - timedelta(minutes=5)
    make_attempt(session, run, key="a")
    incident = opened(session, run, attempt=1, kind="crashed", step=500, occurred_at=struck)
    assert incident.steps_lost == 500
    make_checkpoint(session, run, 480, attempt=1, saved_at=struck - timedelta(minutes=1))
    assert get_incident(session, incident.id).steps_lost == 20


def test_the_same_key_again_is_the_same_incident(session: Session) -> None:
    run = make_run(session)
    first, made = open_incident(session, run.id, NewIncident(key="k", cause="power"), actor="sam")
    again, made_again = open_incident(session, run.id, NewIncident(key="k", cause="disk-full"), actor="sam")
    assert (made, made_again, first.id, again.cause) == (True, False, again.id, "power")


def test_what_the_service_noticed_is_completed_by_the_supervisor_s_late_record(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    (noticed,) = look(session)
    struck = last + timedelta(seconds=4)
    told = NewIncident(
        kind="crashed",
        attempt_key="a",
        cause="gpu-ecc",
        evidence=["NVRM: Xid 48"],
        occurred_at=struck,
        signal="SIGABRT",
        node="n7",
        key="k",
    )
    known, made = open_incident(session, run.id, told, actor="exec")
    assert (known.id, made) == (noticed.id, False)
    assert (known.kind, known.cause, known.occurred_at, known.node) == ("crashed", "gpu-ecc", struck, "n7")
    assert known.cause_said_by is None
    assert get_attempt(session, run.id, 1).state == "failed"
    assert open_incident(session, run.id, told, actor="exec")[0].id == noticed.id


def test_a_crash_whose_record_arrives_after_training_went_on_closes_at_once(session: Session) -> None:
    run, struck = make_run(session), now() - timedelta(hours=1)
    loaded = make_checkpoint(session, run, 100, saved_at=struck - timedelta(hours=1))
    make_attempt(session, run, key="b", resumed_from=ResumePoint(checkpoint_id=loaded))
    recovered = struck + timedelta(minutes=14)
    make_checkpoint(session, run, 200, saved_at=recovered)
    incident = opened(session, run, kind="crashed", attempt=1, occurred_at=struck, step=130)
    assert (incident.ending, incident.recovery_seconds, incident.steps_lost) == ("recovered", 840.0, 30)


def test_of_several_hosts_that_report_one_crash_the_root_cause_counts(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    first = opened(session, run, kind="crashed", attempt=1, cause="nccl-timeout", evidence=["t"], node="n1", key="1")
    second = opened(session, run, kind="crashed", attempt=1, cause="gpu-memory", evidence=["OOM"], node="n2", key="2")
    third = opened(session, run, kind="crashed", attempt=1, cause="nccl-timeout", evidence=["t"], node="n3", key="3")
    assert first.id == second.id == third.id
    assert (third.cause, third.evidence, third.node) == ("gpu-memory", ("OOM",), "n1")


def test_a_crashed_attempt_is_not_lost_as_well(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    opened(session, run, kind="crashed", attempt=1)
    assert look(session) == []


def test_an_attempt_that_says_itself_that_it_failed_has_an_incident_and_a_later_report_completes_it(
    session: Session,
) -> None:
    run, struck = make_run(session), now() - timedelta(minutes=3)
    make_attempt(session, run, key="a")
    amend_attempt(session, run.id, 1, {"state": "failed", "ended_at": struck, "exit_code": 9, "step": 30})
    amend_attempt(session, run.id, 1, {"state": "failed"})
    (noted,) = incidents_of(session, run)
    assert (noted.kind, noted.cause, noted.exit_code, noted.occurred_at) == ("crashed", "unknown", 9, struck)
    assert (noted.opened_by, noted.steps_lost, noted.signature) == ("cairn", 30, None)
    told = opened(session, run, kind="crashed", attempt=1, cause="disk-full", evidence=["full"], key="k")
    assert (told.id, told.cause, told.key, told.evidence) == (noted.id, "disk-full", "k", ("full",))


def test_a_report_that_completes_another_is_checked_and_counted_like_the_first(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    first = opened(session, run, kind="crashed", attempt=1, step=30)
    assert opened(session, run, kind="crashed", attempt=1, step=45).steps_lost == 45
    with pytest.raises(BadIncident):
        opened(session, run, kind="crashed", attempt=1, replica_id=5)
    told = opened(session, run, kind="crashed", attempt=1, steps_lost=7)
    assert (told.id, told.steps_lost, told.steps_lost_said) == (first.id, 7, True)


def lost(session: Session) -> tuple[RunRow, IncidentRow]:
    """A run that fell silent an hour ago, as the service noticed."""
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    (noticed,) = look(session)
    return run, noticed


def test_what_a_second_report_of_one_interruption_says_otherwise_is_named(session: Session) -> None:
    run, noticed = lost(session)
    first = opened(session, run, newest_attempt=True, cause="power", node="n1")
    assert (first.id, first.cause, first.not_applied) == (noticed.id, "power", ())
    again = opened(session, run, newest_attempt=True, cause="link-flap", node="n1", note="seen", exit_code=3)
    assert (again.id, again.cause, again.note, again.not_applied) == (noticed.id, "power", "seen", ("cause",))
    third = opened(session, run, newest_attempt=True, cause="unknown", node="n2", note="other", exit_code=3)
    assert third.not_applied == ("node", "note")
    amend_incident(session, noticed.id, {"cause": "link-flap"}, actor="sam")
    assert opened(session, run, newest_attempt=True, cause="link-flap").not_applied == ()
    assert len(incidents_of(session, run)) == 1


def test_the_same_key_with_another_word_says_that_it_was_not_taken(session: Session) -> None:
    run = make_run(session)
    opened(session, run, key="k", cause="power", steps_lost=7)
    assert opened(session, run, key="k", cause="power", steps_lost=7).not_applied == ()
    assert opened(session, run, key="k", cause="disk-full", steps_lost=8).not_applied == ("cause", "steps_lost")


def test_a_report_says_when_the_training_of_a_lost_attempt_went_on(session: Session) -> None:
    run, noticed = lost(session)
    struck, back = noticed.occurred_at + timedelta(minutes=1), noticed.occurred_at + timedelta(minutes=20)
    told = opened(session, run, newest_attempt=True, cause="power", occurred_at=struck, recovered_at=back)
    assert (told.id, told.ending, told.recovered_at, told.not_applied) == (noticed.id, "recovered", back, ())
    later = back + timedelta(minutes=5)
    second = opened(session, run, newest_attempt=True, cause="disk-full", occurred_at=later)
    assert (second.id != noticed.id, second.cause, second.occurred_at) == (True, "disk-full", later)


def test_what_struck_before_the_attempt_went_on_and_was_lost_is_another_interruption(session: Session) -> None:
    run, noticed = lost(session)
    before = noticed.occurred_at - timedelta(hours=3)
    other = opened(session, run, newest_attempt=True, cause="link-flap", occurred_at=before)
    assert (other.id != noticed.id, other.occurred_at) == (True, before)
    clocks_differ = opened(
        session, run, newest_attempt=True, cause="power", occurred_at=noticed.occurred_at - timedelta(minutes=2)
    )
    assert (clocks_differ.id, clocks_differ.cause) == (noticed.id, "power")


def test_a_crash_is_one_however_it_is_reported_and_opened_again(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    (lost,) = look(session)
    amend_incident(session, lost.id, {"closed_at": now()}, actor="maria")
    crashed = opened(session, run, kind="crashed", attempt=1)
    amend_incident(session, lost.id, {"closed_at": None}, actor="maria")
    assert opened(session, run, kind="crashed", attempt=1, note="again").id in (lost.id, crashed.id)
    assert opened(session, run, kind="lost", attempt=1).id in (lost.id, crashed.id)
    assert len(incidents_of(session, run)) == 2


def test_a_person_may_report_as_many_as_happened(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    assert opened(session, run, attempt=1).id != opened(session, run, attempt=1).id


def test_the_cause_is_amended_by_name_and_taken_back(session: Session) -> None:
    run = make_run(session)
    incident = opened(session, run)
    said = amend_incident(session, incident.id, {"cause": "power", "note": "rack 4"}, actor="maria")
    assert (said.cause, said.cause_said_by, said.note) == ("power", "maria", "rack 4")
    back = amend_incident(session, incident.id, {"cause": None, "note": None}, actor="maria")
    assert (back.cause, back.cause_said_by, back.note) == ("unknown", None, None)


def test_what_a_person_named_no_later_record_overwrites(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    (noticed,) = look(session)
    amend_incident(session, noticed.id, {"cause": "power"}, actor="maria")
    late = opened(session, run, kind="crashed", attempt=1, cause="gpu-ecc", evidence=["x"])
    assert (late.id, late.cause, late.cause_said_by) == (noticed.id, "power", "maria")


def test_closed_by_hand_it_has_no_recovery_time_and_can_be_opened_again(session: Session) -> None:
    run = make_run(session)
    incident = opened(session, run)
    closed = amend_incident(session, incident.id, {"closed_at": now()}, actor="maria")
    assert (closed.ending, closed.recovery_seconds) == ("closed", None)
    assert amend_incident(session, incident.id, {"closed_at": None}, actor="maria").closed_at is None


def test_a_stop_that_a_person_wanted_leaves_nothing_open(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, key="a")
    amend_attempt(session, run.id, 1, {"state": "stopped"})
    told = opened(session, run, attempt=1, kind="crashed", cause="user-interrupt", evidence=["SIGINT was sent"])
    assert (told.ending, told.recovered_at) == ("closed", None)
    make_attempt(session, run, key="b")
    assert opened(session, run, attempt=2, kind="crashed", cause="preemption").ending is None


def test_a_second_open_one_of_the_same_kind_is_refused_by_name(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=2), [1, 2, 3])
    (first,) = look(session)
    amend_incident(session, first.id, {"closed_at": now()}, actor="maria")
    opened(session, run, kind="lost", attempt=1)
    with pytest.raises(IncidentStillOpen, match="another open one"):
        amend_incident(session, first.id, {"closed_at": None}, actor="maria")
    assert get_incident(session, first.id).ending == "closed"


def test_an_old_ledger_can_be_entered_whole(session: Session) -> None:
    run = make_run(session)
    struck, back = at("2022-03-21T13:34"), at("2022-03-21T20:52")
    incident = opened(session, run, cause="gpu-fault", occurred_at=struck, recovered_at=back, steps_lost=250)
    assert (incident.ending, incident.recovery_seconds, incident.steps_lost) == ("recovered", 26280.0, 250)


def test_opening_and_closing_are_announced(session: Session) -> None:
    run = make_run(session)
    incident = opened(session, run)
    amend_incident(session, incident.id, {"closed_at": now()}, actor="maria")
    events = session.query(OutboxEvent).filter_by(subject_id=incident.id).order_by(OutboxEvent.id)
    topics = [event.topic for event in events]
    assert topics == ["incident.opened", "incident.closed"]


@pytest.mark.parametrize(
    ("known", "place"),
    [
        ({"attempt": 7}, "/attempt"),
        ({"attempt_key": "none"}, "/attempt_key"),
        ({"occurred_at": at("2100-01-01")}, "/occurred_at"),
        ({"occurred_at": at("2026-11-02"), "recovered_at": at("2026-11-01")}, "/recovered_at"),
        ({"checkpoint_id": 5}, "/checkpoint_id"),
        ({"replica_id": 5}, "/replica_id"),
        ({"log_excerpt": "é" * 40_000}, "/log_excerpt"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_with_its_place(session: Session, known: dict[str, object], place: str) -> None:
    run = make_run(session)
    with pytest.raises(BadIncident) as refused:
        opened(session, run, **known)
    assert [error.pointer for error in refused.value.errors] == [place]


def test_a_run_or_an_incident_that_does_not_exist_is_not_found(session: Session) -> None:
    with pytest.raises(RunNotFound):
        open_incident(session, 5, NewIncident(), actor="sam")
    with pytest.raises(IncidentNotFound):
        amend_incident(session, 5, {}, actor="sam")


def test_the_list_is_filtered_newest_first_and_goes_on_where_it_ended(session: Session) -> None:
    project = make_project(session)
    one, other = make_run(session, project), make_run(session, project)
    made = [opened(session, one, cause="power", occurred_at=at(f"2026-11-0{day}")).id for day in (1, 3, 2)]
    amend_incident(session, made[0], {"closed_at": now()}, actor="maria")
    opened(session, other, cause="disk-full", occurred_at=at("2026-11-04"))

    def listed(**asked: object) -> list[int]:
        given = Asked(frozenset({project.id}), **asked)  # type: ignore[arg-type]
        return [row.id for row in list_incidents(session, given)]

    assert listed(run_id=one.id) == [made[1], made[2], made[0]]
    assert listed(run_id=one.id, open=True) == [made[1], made[2]]
    assert listed(run_id=one.id, open=False) == [made[0]]
    assert listed(cause="power") == [made[1], made[2], made[0]]
    assert listed(since=at("2026-11-03")) == [listed()[0], made[1]]
    summary = summarise(session, Asked(frozenset({project.id})))
    assert (summary.count, summary.open, summary.unknown_losses) == (4, 3, 4)
    counts = [(each.cause, each.count, each.open) for each in count_by_cause(session, Asked(run_id=one.id))]
    assert counts == [("power", 3, 2)]


def test_every_cause_has_a_title_that_tells_it_from_the_others() -> None:
    titles = [cause.title for cause in CAUSES.values()]
    assert len(set(titles)) == len(titles)
    assert all(name == cause.name for name, cause in CAUSES.items())
