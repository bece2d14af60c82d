"""`cairn spool`: records that the service does not have yet."""

from collections.abc import Sequence
from pathlib import Path

import click

from cairn.cli.lazy import HintingGroup
from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.client import Client
from cairn.errors import CairnError
from cairn.spool.flush import (
    SpoolState,
    decide,
    flush,
    list_jobs,
    list_refused,
    list_spools,
    list_unfinished,
    waiting_runs,
)
from cairn.spool.resend import send_again
from cairn.spool.service import is_same
from cairn.spool.unfinished import Save
from cairn.supervise.kept import Left

COLUMNS = ("spool", "host", "pid", "owner", "records", "runs", "oldest", "service", "why it waits")


@click.group(cls=HintingGroup)
def spool() -> None:
    """Show and send records that wait on disk.

    A training job writes its records to a spool and sends them in the background. What it could not send is sent by
    the next start, or by `cairn spool flush`.
    """


@spool.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """The spools of this host, what jobs of `cairn exec` could not send, saves whose files are not whole yet, and what
    the service has refused."""
    spools, jobs, unfinished, refused = list_spools(), list_jobs(), list_unfinished(), list_refused()
    if not (spools or jobs or unfinished or refused):
        if as_json:
            print_json({"spools": [], "jobs": [], "unfinished": [], "refused": []})
        else:
            say("Nothing waits: the service has every record of this host.")
        return 1
    if as_json:
        said = {"spools": [_wire(each) for each in spools], "jobs": [_job(each) for each in jobs]}
        left = {"unfinished": [_save(each) for each in unfinished], "refused": [_refusal(each) for each in refused]}
        print_json(said | left)
        return 0
    ours = _service()
    _table(COLUMNS, [_cells(each, ours) for each in spools])
    _table(
        ("job", "run", "requests", "service"),
        [(each.path, each.run, len(each.requests), each.service) for each in jobs],
    )
    saves = [
        (each.run, each.facts.get("number"), each.item.get("step"), ", ".join(each.paths), _why_unfinished(each))
        for each in unfinished
    ]
    _table(("not whole: run", "attempt", "step", "path", "what clears it"), saves)
    columns = ("refused", "kind", "run", "step", "reason", "file")
    _table(columns, [(each.at, each.kind, each.run, each.step, each.reason, each.path) for each in refused])
    return 0


@spool.command("flush")
@click.option("--restart", is_flag=True, help="What waits for it started over on purpose.")
@click.option("--resumed-from", type=click.IntRange(0), metavar="STEP", help="What waits for it loaded this step.")
@click.option("--here", is_flag=True, help="What is for another service, or another address of this one, goes here.")
@click.option(
    "--forget", is_flag=True, help="Saves whose files are gone are forgotten, even where their storage may be away."
)
@click.option("--run", "run_", metavar="PROJECT/RUN", help="Only what is of this run.")
@click.option("--spool", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Only this one.")
@json_option
def flush_command(
    restart: bool,
    resumed_from: int | None,
    here: bool,
    forget: bool,
    run_: str | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Send what processes that have ended left behind. Exit code 1: something waits for a decision, or is for another
    service.

    Jobs of `cairn exec` leave records too, and saves whose files were not whole are looked at again. One whose folder
    somebody has removed is forgotten, and stays pending at the service.

    Records of an execution that neither said what it loaded nor shows it by its steps wait for --restart or
    --resumed-from; where several runs do, name one with --run. One that still runs is told the same way and sends its
    records itself.
    """
    if restart and resumed_from is not None:
        raise click.UsageError("Say --restart or --resumed-from, not both.")
    said: dict[str, object] = {}
    if restart or resumed_from is not None:
        said = {"restart": True} if restart else {"resumed_from": {"step": resumed_from}}
    with Client() as client:
        done = flush(client, only=folder, run=run_, here=here, forget=forget)
        url = client.url
        if said:
            _decide(said, run_, folder, url)
            before, done = done, flush(client, only=folder, run=run_, meant=said, here=here, forget=forget)
            done.follows(before)
    if as_json:
        kept = [{"spool": str(path), "why": why} for path, why in done.kept]
        counts = {name: getattr(done, name) for name in ("sent", "spools", "refused", "committed", "forgotten")}
        print_json({**counts, "kept": kept, "elsewhere": done.elsewhere, "said": done.said})
        return 1 if done.kept or done.elsewhere else 0
    for remark in dict.fromkeys(done.said):
        say(remark)
    click.echo(f"Sent {_records(done.sent)} of {done.spools} spools.")
    for path, why in done.kept:
        say(f"{path} waits: {why}.")
    for service, count in done.elsewhere.items():
        say(f"{_records(count)} wait for {service}; --here sends them to this service, {url}.")
    if done.committed:
        click.echo(f"{done.committed:,} saves whose files are whole by now were committed.")
    if done.forgotten:
        saves = "1 save" if done.forgotten == 1 else f"{done.forgotten:,} saves"
        click.echo(f"Forgot {saves} whose files are gone; the service keeps them as pending.")
    if running := [each for each in list_spools() if each.is_alive and each.waiting]:
        say(f"{len(running)} more belong to processes that still run and send their records themselves.")
    return 1 if done.kept or done.elsewhere else 0


def _decide(said: dict[str, object], run: str | None, folder: Path | None, url: str) -> None:
    """Tells what waits for such a word, of one run only: it supersedes checkpoints."""
    waiting = {each.folder: waiting_runs(each.folder) for each in list_spools() if each.why and _is_for(each, url)}
    chosen = [each for each in waiting if folder is None or each.samefile(folder)]
    jobs = [each.run for each in list_jobs() if folder is None and each.is_for(url)]
    runs = {*jobs, *(name for each in chosen for name in waiting[each])}
    if run is None and len(runs) > 1:
        raise click.UsageError(f"That is said of one run: name it with --run, one of {', '.join(sorted(runs))}.")
    for each in chosen:
        if run in (None, *waiting[each]):
            decide(each, said if run is None else {**said, "run": run})


def _is_for(state: SpoolState, url: str) -> bool:
    return not state.service or is_same(state.service, url)


@spool.command("again")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--without-times", is_flag=True, help="Leave out when it was saved, which a wrong clock has said.")
@json_option
def again_command(files: tuple[Path, ...], without_times: bool, as_json: bool) -> int:
    """Send saves and curves again that the service has refused: all, or the FILEs that `cairn spool list` names.

    What is taken now is gone from the list. Exit code 1: something was refused again, or nothing is there.
    """
    chosen = list(files) or [each.path for each in list_refused()]
    with Client() as client:
        told = {path: send_again(client, path, without_times=without_times) for path in chosen}
    left = {str(path): why for path, why in told.items() if why}
    sent = len(told) - len(left)
    if as_json:
        print_json({"sent": sent, "kept": [{"file": path, "why": why} for path, why in left.items()]})
    else:
        for path, why in left.items():
            say(f"{path} stays: {why}")
        click.echo(f"Sent {_records(sent)} that had been refused.")
    return 0 if sent and not left else 1


@spool.command("discard")
@click.argument("folders", nargs=-1, required=True, metavar="SPOOL...", type=click.Path(path_type=Path))
@json_option
def discard_command(folders: tuple[Path, ...], as_json: bool) -> int:
    """Throw away what processes that have ended have left, unsent: the SPOOLs that `cairn spool list` names.

    For records that nobody wants, such as those of a try. The files of checkpoints are not touched.
    """
    from cairn.spool.discard import discard

    gone: dict[str, int] = {}
    for folder in folders:
        gone[str(folder)] = discard(folder)
        if not as_json:
            click.echo(f"Threw away {folder} with {_records(gone[str(folder)])}.")
    if as_json:
        print_json({"discarded": [{"spool": spool, "records": count} for spool, count in gone.items()]})
    return 0


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _service() -> str:
    """That of today's settings; '' where there is none."""
    try:
        with Client() as client:
            return client.url
    except CairnError:
        return ""


def _why(each: SpoolState, ours: str) -> str:
    if each.is_alive:
        return each.why or "its process sends it"
    if each.service and ours and not is_same(each.service, ours):
        return f"it is not for {ours}; `cairn spool flush --here` sends it there"
    return each.why or "its process has ended; `cairn spool flush` sends it"


def _why_unfinished(each: Save) -> str:
    if each.is_gone(surely=True):
        return "its files are gone; `cairn spool flush` forgets it"
    if each.is_gone():
        return "its files and the folder around them are gone; `cairn spool flush --forget` forgets it"
    return "`cairn spool flush` looks whether it is whole by now; `cairn inspect` says what is missing"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        print_rows(columns, rows)


def _cells(each: SpoolState, ours: str) -> tuple[object, ...]:
    owner = "runs" if each.is_alive else "ended"
    known = (each.folder, each.host, each.pid or "", owner, each.waiting, ", ".join(each.runs), each.oldest_at)
    return *known, each.service, _why(each, ours) if each.waiting else ""


def _wire(each: SpoolState) -> dict[str, object]:
    said = {name: getattr(each, name) for name in ("host", "pid", "is_alive", "waiting", "oldest_at", "service", "why")}
    return {"spool": str(each.folder), **said, "runs": list(each.runs)}


def _refusal(each: "object") -> dict[str, object]:
    said = vars(each)
    return {**said, "path": str(said["path"])}


def _job(each: Left) -> dict[str, object]:
    return {"path": str(each.path), "run": each.run, "requests": len(each.requests), "service": each.service}


def _save(each: Save) -> dict[str, object]:
    known = {"run": each.run, "attempt": each.facts.get("number"), "step": each.item.get("step"), "paths": each.paths}
    return {**known, "is_gone": each.is_gone()}
