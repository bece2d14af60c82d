"""Every host of a launch loads the same checkpoint, and none begins before all can read it."""

import threading
from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.db import Database
from registry.recovery.agreement import Agreement, BadProposal, CannotAgree, Vote, agree
from registry.runs import RunNotFound, RunRow
from tests.factories import make_checkpoint, make_run


def say(session: Session, run: RunRow, host: str, checkpoint: int | None, hosts: int = 2, **known: Any) -> Agreement:
    return agree(session, run.id, Vote(known.pop("key", "job-1"), host, hosts, checkpoint, **known))


def test_the_first_host_proposes_and_the_others_follow(session: Session) -> None:
    run = make_run(session)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    first = say(session, run, "a", new)
    assert (first.checkpoint.id, first.ready, first.is_sealed) == (new, ("a",), False)
    second = say(session, run, "b", old)  # its own choice differs: it is told what to look at
    assert (second.checkpoint.id, second.ready, second.is_sealed) == (new, ("a",), False)
    second = say(session, run, "b", new)
    assert (second.ready, second.is_sealed) == (("a", "b"), True)
    assert say(session, run, "a", new).is_sealed  # asked again, it says how it stands


def test_no_host_begins_before_all_are_ready(session: Session) -> None:
    """A part that is ready while another still reads must not start."""
    run = make_run(session)
    number = make_checkpoint(session, run)
    for host in ("a", "b", "a", "b"):
        assert not say(session, run, host, number, hosts=3).is_sealed
    assert say(session, run, "c", number, hosts=3).is_sealed


def test_what_one_host_cannot_read_is_replaced_for_all(session: Session) -> None:
    run = make_run(session)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    say(session, run, "a", new)
    changed = say(session, run, "b", old, instead_of=new, reason="shard 3 is cut short")
    assert (changed.checkpoint.id, changed.ready, changed.refused) == (old, ("b",), (new,))
    assert not changed.is_sealed
    assert say(session, run, "a", new).checkpoint.id == old  # the first is told, and is not counted
    assert say(session, run, "a", old).is_sealed


def test_a_refused_checkpoint_is_not_proposed_again(session: Session) -> None:
    run = make_run(session)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    say(session, run, "a", new)
    say(session, run, "b", old, instead_of=new)
    with pytest.raises(CannotAgree, match="refused by a host"):
        say(session, run, "a", new, instead_of=old)


def test_a_host_that_can_read_nothing_ends_it_for_all(session: Session) -> None:
    run = make_run(session)
    number = make_checkpoint(session, run)
    say(session, run, "a", number)
    assert say(session, run, "b", None, reason="no disk").failed == "host b can read no checkpoint: no disk"
    told = say(session, run, "a", number)
    assert (told.failed is not None, told.is_sealed) == (True, False)


def test_a_sealed_agreement_never_changes(session: Session) -> None:
    run = make_run(session)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    say(session, run, "a", old, hosts=1)
    again = say(session, run, "a", new, hosts=1, instead_of=old)
    assert (again.checkpoint.id, again.is_sealed, again.refused) == (old, True, ())
    assert say(session, run, "a", None, hosts=1).failed is None


def test_another_launch_agrees_anew(session: Session) -> None:
    run = make_run(session)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    assert say(session, run, "a", old, hosts=1).checkpoint.id == old
    assert say(session, run, "a", new, hosts=1, key="job-2").checkpoint.id == new


def test_what_cannot_be_agreed_on_is_refused(session: Session) -> None:
    run = make_run(session)
    number, pending = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2, state="pending")
    with pytest.raises(BadProposal, match="pending"):
        say(session, run, "a", pending)
    with pytest.raises(BadProposal, match="no such checkpoint"):
        say(session, run, "a", make_checkpoint(session))
    with pytest.raises(BadProposal, match="nothing was proposed"):
        say(session, run, "a", None)
    with pytest.raises(RunNotFound):
        agree(session, 12, Vote("k", "a", 1, number))
    say(session, run, "a", number)
    with pytest.raises(CannotAgree, match="was said to have 2 hosts"):
        say(session, run, "b", number, hosts=4)


def test_hosts_that_ask_at_once_get_one_answer(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        numbers = [make_checkpoint(session, run, step) for step in (1, 2, 3, 4)]
        session.commit()
    found: list[int] = []

    def ask(host: int) -> None:
        with committed_database.write() as session:
            own = say(session, run, f"h{host}", numbers[host % 4], hosts=8)
            session.commit()
        with committed_database.write() as session:
            own = say(session, run, f"h{host}", own.checkpoint.id, hosts=8)
            session.commit()
        found.append(own.checkpoint.id)

    threads = [threading.Thread(target=ask, args=(host,)) for host in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(found)) == 1
    with committed_database.write() as session:
        assert say(session, run, "h0", found[0], hosts=8).is_sealed
