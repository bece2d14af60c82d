"""`cairn exec`: a training job under a supervisor."""

import math

import click

from cairn.cli.quantities import Words
from cairn.cli.targets import find_checkpoint_id, split_run
from cairn.resume.choosing import PIECES


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.option("--run", "run_", metavar="PROJECT/RUN", required=True, help="The run; made where it is absent.")
@click.option(
    "--retries",
    type=click.IntRange(0, 10_000),
    default=0,
    show_default=True,
    help="Start again after a failure, N times.",
)
@click.option(
    "--backoff",
    "backoff_seconds",
    type=click.FloatRange(0, 900),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Before the first start again; doubles each time, up to 15 minutes.",
)
@click.option(
    "--resume-flag",
    "resume_flags",
    multiple=True,
    metavar="FLAG",
    help="Put FLAG and the path to load at the end of the command, where there is one. '--load=' joins both.",
)
@click.option(
    "--require",
    type=Words(PIECES, "pieces"),
    help="Pieces that must be there to be loaded, as of `cairn resume`. 'weights' asks for weights alone.",
)
@click.option("--resumed-from", metavar="CHECKPOINT", help="What the first start loads.")
@click.option("--restart", is_flag=True, help="The first start begins anew, over the run's checkpoints, on purpose.")
@click.option(
    "--heartbeat",
    "heartbeat_seconds",
    type=click.FloatRange(0.1, 60),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
)
@click.option("--hardware", metavar="TEXT", help="What it runs on, for the fault ledger: '8x H100-80GB'.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def exec_command(
    run_: str,
    retries: int,
    backoff_seconds: float,
    resume_flags: tuple[str, ...],
    require: tuple[str, ...] | None,
    resumed_from: str | None,
    restart: bool,
    heartbeat_seconds: float,
    hardware: str | None,
    command: tuple[str, ...],
) -> int:
    """Run a training job on one host, or on rank 0, and record how it fares.

    \b
    cairn exec --run llm/7b-a -- torchrun --nproc-per-node 8 train.py
    cairn exec --run llm/7b-a --retries 5 --resume-flag --load -- torchrun ... train.py
    cairn exec --run llm/7b-a --retries 5 -- python train.py --load {resume}

    Each start is an attempt of the run, with heartbeats and the step that its log tells. When the job dies, an incident
    opens with its exit code or signal, the cause that the log tells and the lines that say so. {resume} in the command
    becomes the path to load, as `cairn resume` finds it, or nothing where the run has no checkpoint yet.

    The job sees its output's terminal, gets every signal (TERM, INT, HUP, USR1, USR2), and goes on when the service is
    away: what could not be sent is kept, and sent by the next `cairn exec` on this machine. In its environment:
    CAIRN_RUN, CAIRN_ATTEMPT_KEY, and CAIRN_RESUME_PATH and CAIRN_RESUMED_FROM where something is loaded.

    Ends with the job's own exit code; 128 and the signal's number where a signal ended it.
    """
    from cairn.supervise import Plan, supervise

    split_run(run_)
    if not (math.isfinite(backoff_seconds) and math.isfinite(heartbeat_seconds)):
        raise click.UsageError("--backoff and --heartbeat are numbers of seconds.")
    if resumed_from is not None and restart:
        raise click.UsageError("Say either --resumed-from or --restart.")
    loaded = _known(resumed_from) if resumed_from is not None else None
    plan = Plan(
        run_,
        command,
        retries=retries,
        backoff_seconds=backoff_seconds,
        resume_flags=resume_flags,
        require=require or (),
        resumed_from=loaded,
        restart=restart,
        heartbeat_seconds=heartbeat_seconds,
        hardware=hardware,
    )
    return supervise(plan)


def _known(text: str) -> str:
    """The id of the checkpoint; where the service cannot be asked, what was said, as it is."""
    from cairn.client import Client
    from cairn.errors import CairnError, Invalid, NotFound
    from cairn.transport import Retries

    try:
        with Client(timeout=5.0, retries=Retries(count=0)) as client:
            return find_checkpoint_id(client, text)
    except (Invalid, NotFound):
        raise
    except CairnError:
        return text
