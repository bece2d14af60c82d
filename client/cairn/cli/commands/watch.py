"""`cairn watch`: record what a training of any framework saves, as it appears."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

import click

from cairn.cli.count_bar import count_bar
from cairn.cli.output import clean, json_option, say
from cairn.cli.targets import split_run
from cairn.client import Client
from cairn.drilled import refuse_in_drill
from cairn.formats.checkpoints import Unreadable
from cairn.scan import DEFAULT_SETTLE_SECONDS
from cairn.stores import is_url
from cairn.transport import Retries
from cairn.watch import Event, Watched, Watcher, watch
from cairn.watch.tiers import tier_of

# A job that is told to end has 30 s at SLURM; what one look cannot send, the next does.
TIMEOUT_SECONDS = 5.0
QUICK = Retries(count=2, wait_seconds=3.0)


@click.command(name="watch")
@click.argument("root", metavar="ROOT")
@click.option("--run", "run_", required=True, metavar="PROJECT/RUN", help="Where to record; made where it is absent.")
@click.option("--once", is_flag=True, help="Look once and end: 0 where something is recorded below ROOT, else 1.")
@click.option("--poll", type=click.FloatRange(0.1), default=30.0, show_default=True, metavar="SECONDS")
@click.option(
    "--quiet",
    type=click.FloatRange(0),
    default=DEFAULT_SETTLE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Where no file shows that a save has ended, it has once nothing has changed for so long.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FILE",
    help="A log of the training (Megatron, torchtitan, JSON lines), or a run's folder of W&B or MLflow's file store.",
)
@click.option("--evals", multiple=True, metavar="FOLDER", help="Where result files of evaluations appear.")
@click.option(
    "--tier", type=click.Choice(["local", "shared", "object"]), help="Of the copies. Default: as ROOT is mounted."
)
@json_option
def watch_command(
    root: str,
    run_: str,
    once: bool,
    poll: float,
    quiet: float,
    logs: tuple[str, ...],
    evals: tuple[str, ...],
    tier: str | None,
    as_json: bool,
) -> int:
    """Record checkpoints below ROOT (a folder or a bucket) as they appear, whatever framework writes them.

    \b
    cairn watch /mnt/ckpt/7b --run llm/7b-v3 --log train.log
    cairn watch s3://ckpt/7b --run llm/7b-v3 --poll 120

    A checkpoint is committed once a file shows that its save has ended, or once it has been quiet; loss and curves come
    from logs and `trainer_state.json`, scores from result files beside it. It can be stopped and started at any time,
    and waits where the service is away. With --json, one line an event.
    """
    refuse_in_drill("Nothing is watched.")
    project, run = split_run(run_)
    tier = tier or ("object" if is_url(root) else tier_of(root))
    if tier is None:
        raise click.UsageError("The system does not say how ROOT is mounted; say --tier local or --tier shared.")
    if not as_json and not once:
        say(f"Watching {root} ({tier}) for {project}/{run}, every {poll:g} s; Ctrl-C ends it.")
    what = Watched(root, project, run, tier, quiet, logs, evals)
    if once:
        with Watcher(what) as watcher, Client() as client:
            return _look_once(watcher, client, as_json)
    quick = Client(timeout=TIMEOUT_SECONDS, retries=QUICK)
    with Watcher(what) as watcher, quick as client, _until_stopped() as stop:
        for event in watch(watcher, client, stop, poll_seconds=poll):
            _tell(event, as_json)
    return 0


def _look_once(watcher: Watcher, client: Client, as_json: bool) -> int:
    told = False
    try:
        with count_bar("Looking", None) as progress:
            for event in watcher.look(client, progress):
                told = True
                _tell(event, as_json)
    except Unreadable as fault:
        say(str(fault))
        return 1
    if not watcher.recorded():
        say("Nothing that is known as a checkpoint lies there. `cairn inspect FOLDER` says what a folder holds.")
        return 1
    if not told and (others := watcher.elsewhere()):
        say(others)
    return 0


def _tell(event: Event, as_json: bool) -> None:
    click.echo(json.dumps(event.to_plain(), ensure_ascii=False) if as_json else f"{event.kind}: {clean(event.text)}")


@contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """Set by SIGTERM or SIGINT: the look that is under way is finished first.

    By a thread, since `set` waits for a lock that whoever was interrupted in `wait` may hold; `put` waits for none.
    """
    stop, told = threading.Event(), SimpleQueue[int]()

    def end(number: int, frame: FrameType | None) -> None:
        told.put(number)

    def stop_when_told() -> None:
        told.get()
        stop.set()

    threading.Thread(target=stop_when_told, name="signals", daemon=True).start()
    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
