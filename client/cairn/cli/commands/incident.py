"""`cairn incident`: the fault ledger."""

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import click

from cairn.cli.lazy import HintingGroup
from cairn.cli.output import clean, json_option, print_facts, print_json, print_rows, say, say_if_cut
from cairn.cli.targets import find_checkpoint_id, find_run
from cairn.client import Client
from cairn.errors import Invalid
from cairn.types import Incident

KNOWN = (
    "power, gpu-off-bus, gpu-ecc, gpu-xid, gpu-fault, gpu-memory, host-memory, host-fault, link-flap, network, "
    "nccl-timeout, rendezvous, worker-lost, storage-io, stale-handle, disk-full, corrupt-checkpoint, nan-loss, "
    "python-exception, native-crash, software, configuration, preemption, scheduler-limit, scheduler, maintenance, "
    "user-interrupt, membership-change, hang, unknown"
)
SIGNAL = re.compile(r"SIG[A-Z0-9+-]{1,20}")


@click.group(cls=HintingGroup)
def incident() -> None:
    """List, show, open and close interruptions; name their causes."""


@incident.command("list")
@click.option("--project", help="Only those of this project.")
@click.option("--run", "run_", metavar="PROJECT/RUN|ID", help="Only those of this run.")
@click.option("--open/--closed", "is_open", default=None, help="Only those that are open, or closed.")
@click.option("--cause", help="Only those of this cause, e.g. nccl-timeout.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@json_option
def list_incidents(
    project: str | None, run_: str | None, is_open: bool | None, cause: str | None, limit: int, as_json: bool
) -> int:
    """Interruptions, the newest first. Exit code 1: there is none."""
    with Client() as client:
        run = find_run(client, run_) if run_ else None
        found = list(client.list_incidents(project=project, run=run, open=is_open, cause=cause, limit=limit))
    if as_json:
        print_json({"items": [each.raw for each in found]})
    elif found:
        say(summary(found))
        columns = ("when", "run", "attempt", "cause", "kind", "node", "steps lost", "recovered in", "id")
        print_rows(columns, [_row(each) for each in found])
        say_if_cut(len(found), limit)
    else:
        say("No interruption. `cairn exec --run PROJECT/RUN -- COMMAND` records those of a job by itself.")
    return 0 if found else 1


@incident.command()
@click.argument("incident_id", metavar="ID")
@json_option
def show(incident_id: str, as_json: bool) -> None:
    """One interruption with the end of its log."""
    with Client() as client:
        found = client.get_incident(incident_id)
    if as_json:
        print_json(found.raw)
        return
    names = ("cause_said_by", "exit_code", "signal", "node", "hardware", "last_step", "steps_lost", "checkpoint")
    print_facts(
        [
            ("incident", found.id),
            ("run", _run_name(found)),
            ("attempt", found.attempt),
            ("state", found.state),
            ("kind", _kind(found)),
            ("cause", found.cause_title or found.cause),
            ("occurred", found.occurred_at),
            *((name.replace("_", " "), getattr(found, name)) for name in names),
            ("recovered in", _duration(found.recovery_seconds)),
            ("note", found.note),
        ]
    )
    if found.evidence:
        click.echo("\nThe lines that say so:")
        click.echo("\n".join(f"  {clean(line)}" for line in found.evidence))
    if found.suspect:
        instead = found.suspect.get("instead") or {}
        say(f"The checkpoint is suspect: {found.suspect.get('reason')}. {instead.get('sentence', '')}")
    if found.log_excerpt:
        click.echo("\nThe end of its log:")
        click.echo(clean(found.log_excerpt))


@incident.command("open")
@click.option("--run", "run_", metavar="PROJECT/RUN|ID", required=True)
@click.option("--attempt", type=click.IntRange(1), help="Default: the newest.")
@click.option("--cause", help="Such as power, gpu-ecc, nccl-timeout, disk-full, maintenance.")
@click.option("--at", "occurred_at", metavar="TIME", help="ISO 8601 with a zone. Default: now.")
@click.option("--recovered-at", metavar="TIME", help="When training went on, where that is past.")
@click.option("--node")
@click.option("--hardware", help="'8x H100-80GB'")
@click.option("--exit-code", type=int)
@click.option("--signal", "signal_", metavar="SIGNAME")
@click.option("--step", type=click.IntRange(0), help="The last step that was made.")
@click.option("--steps-lost", type=click.IntRange(0), help="Default: counted from the recorded steps.")
@click.option("--checkpoint", metavar="CHECKPOINT", help="What had been loaded. Default: as the attempt says.")
@click.option("--log", "log", type=click.File("rb"), help="A log, of which the end is kept and the cause guessed.")
@click.option("--note")
@click.option("--key", help="A name of your own: the same again is the same incident.")
@json_option
def open_incident(
    run_: str,
    attempt: int | None,
    cause: str | None,
    occurred_at: str | None,
    recovered_at: str | None,
    node: str | None,
    hardware: str | None,
    exit_code: int | None,
    signal_: str | None,
    step: int | None,
    steps_lost: int | None,
    checkpoint: str | None,
    log: Any,
    note: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Record an interruption by hand."""
    if signal_ is not None and not SIGNAL.fullmatch(signal_):
        raise Invalid(f"--signal is {signal_[:40]!r}; expected a name such as SIGKILL.")
    read = _read_log(log) if log is not None else {}
    with Client() as client:
        made = client.open_incident(
            find_run(client, run_),
            attempt=attempt,
            cause=cause or read.get("cause"),
            evidence=read.get("evidence") if cause is None else None,
            occurred_at=_time(occurred_at, "--at"),
            recovered_at=_time(recovered_at, "--recovered-at"),
            node=node,
            hardware=hardware,
            exit_code=exit_code,
            signal=signal_,
            step=step,
            steps_lost=steps_lost,
            checkpoint=find_checkpoint_id(client, checkpoint) if checkpoint else None,
            log_excerpt=read.get("log_excerpt"),
            note=note,
            key=key,
        )
    _say_done(made, as_json)


@incident.command()
@click.argument("incident_id", metavar="ID")
@click.option("--note")
@json_option
def close(incident_id: str, note: str | None, as_json: bool) -> None:
    """Close an interruption by hand. Most close by themselves when training goes on."""
    changes: dict[str, Any] = {"open": False} | ({} if note is None else {"note": note})
    with Client() as client:
        _say_done(client.patch_incident(incident_id, **changes), as_json)


@incident.command()
@click.argument("incident_id", metavar="ID")
@click.argument("cause")
@click.option("--node")
@click.option("--note")
@json_option
def cause(incident_id: str, cause: str, node: str | None, note: str | None, as_json: bool) -> None:
    """Name the cause of an interruption: power, gpu-ecc, link-flap ..."""
    given = {"cause": cause, "node": node, "note": note}
    with Client() as client:
        done = client.patch_incident(incident_id, **{name: value for name, value in given.items() if value is not None})
    _say_done(done, as_json)


def summary(found: Sequence[Incident]) -> str:
    """'2 interruptions, 1 open; 1240 steps lost; last: NCCL timeout on node7, recovered in 14 min.'"""
    still = sum(each.state == "open" for each in found)
    lost = [each.steps_lost for each in found if each.steps_lost is not None]
    unknown = len(found) - len(lost)
    last = found[0]
    parts = [f"{len(found)} interruption{'s' * (len(found) != 1)}" + (f", {still} open" if still else "")]
    if lost:
        parts.append(f"{sum(lost)} steps lost" + (f" (unknown of {unknown})" if unknown else ""))
    where = f" on {last.node}" if last.node else ""
    recovered = _duration(last.recovery_seconds)
    ended = f", recovered in {recovered}" if recovered else f", {last.state}"
    return "; ".join([*parts, f"last: {last.cause_title or last.cause}{where}{ended}"]) + "."


def _row(each: Incident) -> tuple[Any, ...]:
    when = each.occurred_at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M") if each.occurred_at else None
    recovered = _duration(each.recovery_seconds) or each.state
    return when, _run_name(each), each.attempt, each.cause, _kind(each), each.node, each.steps_lost, recovered, each.id


def _kind(each: Incident) -> str:
    """A job that was told to end did not crash."""
    told = each.kind == "crashed" and each.cause_family in ("person", "scheduler")
    return "stopped" if told else str(each.kind)


def _run_name(each: Incident) -> str:
    return f"{each.project}/{each.run.name if each.run else '?'}"


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _time(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Invalid(f"{option} is {text[:40]!r}; expected a time with its zone, such as 2026-11-01T12:00:00Z.")
    return found


def _read_log(log: Any) -> dict[str, Any]:
    from cairn.causes import guess
    from cairn.supervise.excerpt import clean as without_secrets
    from cairn.supervise.excerpt import excerpt
    from cairn.supervise.tail import Tail

    tail = Tail()
    while chunk := log.read(1 << 20):
        tail.add(1, chunk)
    found = guess(tail.lines())
    evidence = [without_secrets(line) for line in found.evidence]
    return {"cause": found.cause, "evidence": evidence or None, "log_excerpt": excerpt(tail.lines())}


def _say_done(done: Incident, as_json: bool) -> None:
    if as_json:
        print_json(done.raw)
        return
    say(f"Incident {done.id} of {_run_name(done)}: {done.cause_title or done.cause}, {done.state}.")
    if done.not_applied:
        names = ", ".join(name.replace("_", " ") for name in done.not_applied)
        say(
            f"This interruption was recorded before, and says otherwise of: {names}. That was not changed; "
            f"`cairn incident cause {done.id} CAUSE` names another cause, --node and --note beside it. "
            "One that struck at another time is recorded with --at."
        )
    if done.cause_family == "other":
        say(f"{done.cause!r} is no cause that the service knows: it is counted by itself. Known are {KNOWN}.")
