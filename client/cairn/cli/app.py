"""The command group, and how its commands end: one exit code and one readable message."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

import click

from cairn.cli.hints import explain
from cairn.cli.lazy import LazyGroup
from cairn.cli.output import CannotWrite, Output, ReaderGone, fill_closed_descriptors, say
from cairn.errors import NO_SUCH_CALL, BadSettings, CairnError, Invalid, NotFound
from cairn.formats import Refused

DONE, NO_RESULT, USAGE, SERVER = 0, 1, 2, 3
HELP = """Record checkpoints, find them, roll back, compare.

A CHECKPOINT is an id, or project/run@step (its newest attempt), or project/run@attempt.step, or an alias as
project/alias. Every command takes --json, and writes plain tab-separated text where its output is piped.

The service is found by CAIRN_URL and CAIRN_TOKEN, else by `cairn login`, else on this machine (at CAIRN_HOST and
CAIRN_PORT, as the service reads them).

\b
Exit codes:
  0  done; also where the reader of a pipe (head, less) wanted no more
  1  no result: nothing found, or nothing meets every condition
  2  usage: a wrong option, argument, filter, setting or input file
  3  the service refused, failed or cannot be reached; or the output cannot be written (a full disk)
"""


COMMANDS = {
    "compare": "cairn.cli.commands.compare:compare",
    "completion": "cairn.cli.commands.completion:completion",
    "drill": "cairn.cli.commands.drill:drill",
    "du": "cairn.cli.commands.du:du",
    "evals": "cairn.cli.commands.evals:evals",
    "exec": "cairn.cli.commands.exec:exec_command",
    "fetch": "cairn.cli.commands.fetch:fetch_command",
    "find": "cairn.cli.commands.find:find",
    "import": "cairn.cli.commands.import_:import_",
    "incident": "cairn.cli.commands.incident:incident",
    "inspect": "cairn.cli.commands.inspect:inspect_command",
    "lineage": "cairn.cli.commands.lineage:lineage",
    "link": "cairn.cli.commands.link:link",
    "login": "cairn.cli.commands.login:login",
    "plan": "cairn.cli.commands.plan:plan",
    "record": "cairn.cli.commands.record:record",
    "reproduce": "cairn.cli.commands.reproduce:reproduce",
    "resume": "cairn.cli.commands.resume:resume",
    "rollback": "cairn.cli.commands.rollback:rollback",
    "run": "cairn.cli.commands.runs:run",
    "scan": "cairn.cli.commands.scan:scan_command",
    "show": "cairn.cli.commands.show:show",
    "spool": "cairn.cli.commands.spool:spool",
    "watch": "cairn.cli.commands.watch:watch_command",
    "why": "cairn.cli.commands.why:why",
}

# What `cairn --help` says of each; one that is left out is imported to be asked.
SUMMARIES = {
    "compare": "Which scores really changed from one checkpoint to another.",
    "completion": "Print the completion script of bash, zsh or fish.",
    "drill": "Rehearse a restore for real, and keep the verdict as evidence.",
    "du": "Show bytes by run, tier and state.",
    "evals": "Send result files of evaluations, or folders of them.",
    "exec": "Run a training job, and record how it ends.",
    "fetch": "Copy a checkpoint into a folder, verified.",
    "find": "Find checkpoints by what they are good at, or by a filter.",
    "import": "Bring in what a tracker has: MLflow, W&B.",
    "incident": "List, show, open and close interruptions.",
    "inspect": "Say what a checkpoint is from its files.",
    "lineage": "Show what a checkpoint came from, and led to.",
    "link": "Tie a run to its run on W&B or MLflow.",
    "login": "Check a token and keep it for this service.",
    "plan": "Show what restoring a checkpoint would take from each copy.",
    "record": "Record a checkpoint.",
    "reproduce": "Write what a checkpoint was made with into a folder.",
    "resume": "Print the path that a launch goes on from.",
    "rollback": "Show checkpoints to go back to, best first.",
    "run": "List runs, or show one.",
    "scan": "Find and record the checkpoints below a folder, or in a bucket.",
    "show": "Show one checkpoint with all that is known of it.",
    "spool": "List or send records that wait on this machine.",
    "watch": "Record checkpoints as they appear in a folder or bucket.",
    "why": "Say why one checkpoint is worse than another.",
}


def _print_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"cairn {version('cairn-client')}")
        ctx.exit()


@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.group(
    cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def cli() -> None:
    pass


assert isinstance(cli, LazyGroup)
cli.homes, cli.summaries = COMMANDS, SUMMARIES


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and answers its exit code; never a traceback for what a user can mend."""
    fill_closed_descriptors()
    output = Output(sys.stdout)
    try:
        with redirect_stdout(output):
            code = int(cli.main(args=arguments, prog_name="cairn", standalone_mode=False) or DONE)
            output.flush()
            return code
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return 130
    except ReaderGone:
        output.give_up()
        return DONE
    except CannotWrite as error:
        output.give_up()
        say(f"cairn: {error}")
        return SERVER
    except (CairnError, Refused, OSError) as error:
        say(f"cairn: {_readable(error)}")
        return _exit_code(error)


def _exit_code(error: Exception) -> int:
    if isinstance(error, NotFound) and error.code != NO_SUCH_CALL:
        return NO_RESULT
    return USAGE if isinstance(error, (Invalid, BadSettings, Refused, OSError)) else SERVER


def _readable(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return explain(error) if isinstance(error, CairnError) else str(error)
