"""The command group, and how its commands end: one exit code and one readable message."""

import os
import sys
from collections.abc import Sequence

import click

from cairn.cli.commands import compare, evals, find, login, record, rollback, runs
from cairn.cli.output import say
from cairn.errors import NO_SUCH_CALL, BadSettings, CairnError, Invalid, NotFound
from cairn.formats import Refused

DONE, NO_RESULT, USAGE, SERVER = 0, 1, 2, 3
HELP = """Record checkpoints, find them, roll back, compare.

A CHECKPOINT is an id, or project/run@step (its newest attempt), or project/run@attempt.step. Every command
takes --json, and writes plain tab-separated text where its output is piped.

The service is found by CAIRN_URL and CAIRN_TOKEN, else by `cairn login`, else on this machine.

\b
Exit codes:
  0  done
  1  no result: nothing found, or nothing meets every condition
  2  usage: a wrong option, argument, filter, setting or input file
  3  the service refused, failed or cannot be reached
"""


@click.group(help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def cli() -> None:
    pass


for command in (login.login, runs.run, record.record, find.find, rollback.rollback, compare.compare, evals.evals):
    cli.add_command(command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and answers its exit code; never a traceback for what a user can mend."""
    try:
        return int(cli.main(args=arguments, prog_name="cairn", standalone_mode=False) or DONE)
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain once more while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
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
    text = str(error)
    if isinstance(error, CairnError) and error.status == 401:
        text += "\n  `cairn login` saves a token for this service."
    return text
