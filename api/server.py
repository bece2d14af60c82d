"""`cairn-server`: run the service and look after it."""

import gc
import logging
import socket
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

import migrations
from api import examining, keeping
from api.damage import WAY_OUT, damage_of
from api.opening import database_of, migrate_to, open_database
from registry.config import Settings, read_settings
from registry.errors import RegistryError, Unavailable
from registry.types import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from api.later import LaterRoutes
    from registry.db import Database

LATER_SECONDS: Final = 0.5  # after which a service that has begun to listen loads what its start left out


class AddressTaken(Unavailable):
    code = "address-taken"
    title = "The service cannot listen"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run Cairn and look after it. Settings come from the environment; see the README."""
    gc.set_threshold(50_000, 20, 100)  # what loads is no garbage: looking through it again and again took half a second
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)


@main.command()
def serve() -> None:
    """Serve the API and the pages; bring the database to the newest schema first."""
    settings = read_settings()
    _run(settings, open_database(settings))


@main.command()
def demo() -> None:
    """Serve with published figures of Pythia and DCLM models loaded."""
    settings = read_settings()
    database = open_database(settings)
    from demo.load import load_demo

    click.echo("Loading the published figures of Pythia and DCLM models ...", err=True)
    load_demo(database)
    _run(settings, database)


@main.command()
def worker() -> None:
    """Do the durable jobs: imports from trackers, pushes to them. Any number may run, on any number of hosts.

    `serve` on SQLite starts one by itself, unless CAIRN_WORKER is 0.
    """
    settings = read_settings()
    database = open_database(settings)
    from api.worker import run_worker

    run_worker(settings, database)


@main.command()
@click.option("--to", "revision", default="head", show_default=True, help="The revision to go to.")
@click.option("--down", is_flag=True, help="Go down to that revision. What only the newer schema can hold is lost.")
def migrate(revision: str, down: bool) -> None:
    """Bring the database to the newest schema, or to another one."""
    database = database_of(read_settings())
    migrate_to(database, revision, down=down)
    click.echo(f"The database is at schema {migrations.current_revision(database)}.")


@main.group()
def token() -> None:
    """Make, list and revoke tokens."""


@token.command("create")
@click.argument("name")
@click.option("--scope", type=click.Choice([scope.value for scope in Scope]), default="write", show_default=True)
@click.option("--project", "names", multiple=True, help="Bind it to this project; may be given again.")
@click.option("--days", type=click.IntRange(1, 36_500), help="It ends after so many days (default: never).")
def create_token(name: str, scope: str, names: "Sequence[str]", days: int | None) -> None:
    """Make a token and print it. It can be read only now: the database keeps its hash."""
    from registry import tokens
    from registry.db import now

    ends = None if days is None else now() + timedelta(days=days)
    with open_database(read_settings()).write() as session:
        ids = [_project_id(session, each) for each in names] or None
        secret = tokens.issue_token(session, name, Scope(scope), project_ids=ids, expires_at=ends, actor="cairn-server")
    click.echo(secret)


@token.command("list")
def list_tokens() -> None:
    """Every token, without its secret: its id, scope, day, projects and name."""
    from registry import tokens
    from registry.db import now
    from registry.ids import to_text

    with open_database(read_settings()).read() as session:
        for row in tokens.list_tokens(session):
            projects = "every project" if row.projects is None else f"only {', '.join(row.projects) or 'none'}"
            ended = row.expires_at is not None and row.expires_at <= now()
            until = f", until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
            state = "revoked" if row.revoked_at else "expired" if ended else projects + until
            click.echo(f"{to_text(row.id)}  {row.scope:5}  {row.created_at:%Y-%m-%d}  {state:17}  {row.name}")


@token.command("revoke")
@click.argument("token_id")
def revoke_token(token_id: str) -> None:
    """End a token, by the id that `token list` shows."""
    from registry import ids, tokens

    with open_database(read_settings()).write() as session:
        tokens.revoke_token(session, ids.id_or(token_id, tokens.TokenNotFound), actor="cairn-server")
        left = tokens.has_admin(session)
    click.echo("Revoked.")
    if not left:
        click.echo("No admin token is left. `cairn-server token create NAME --scope admin` makes one.", err=True)


@main.command("login-link")
def login_link() -> None:
    """Print a fresh link that logs a browser in as the admin token; good once, for an hour."""
    settings = read_settings()
    click.echo(_login_link(settings, open_database(settings)))


@main.command()
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--project", help="Only what was changed in this project.")
@click.option("--subject", metavar="ID", help="Only what was done to this checkpoint, run, token ...")
def audit(limit: int, project: str | None, subject: str | None) -> None:
    """The newest entries of the audit trail: when, who, what, in which project, to what (its id), and how."""
    from registry import ids
    from registry.audit import list_entries

    subject_id = None if subject is None else ids.from_text(subject)
    if subject is not None and subject_id is None:
        raise click.BadParameter(f"{subject[:40]!r} is no id: expected {ids.LENGTH} letters and digits.")
    with open_database(read_settings()).read() as session:
        project_id = None if project is None else _project_id(session, project)
        for entry in list_entries(session, project_id=project_id, subject_id=subject_id, limit=limit):
            what = f"{entry.action:18}  {entry.project or '-':12}  {entry.subject or '-':13}  {entry.detail or ''}"
            click.echo(f"{entry.at:%Y-%m-%dT%H:%M:%SZ}  {entry.actor:16}  {what}".rstrip())


main.add_command(keeping.backup)
main.add_command(keeping.restore)
main.add_command(examining.doctor)


def _project_id(session: "Session", name: str) -> int:
    from registry.projects import ProjectNotFound, find_project

    try:
        return find_project(session, name).id
    except ProjectNotFound:
        told = f"There is no project {name[:128]!r}. `cairn record --project ...` makes one; leave it out to mean all."
        raise ProjectNotFound(told) from None


def _login_link(settings: Settings, database: "Database") -> str:
    """Raises Unauthenticated where the admin token's file is gone."""
    from registry import tokens

    try:
        secret = settings.admin_token_file.read_text().strip()
    except OSError:
        secret = ""
    with database.write() as session:
        return f"{settings.base_url}/login?code={tokens.issue_login_code(session, secret)}"


def where_the_token_lies(settings: Settings, database: "Database") -> str:
    """Where to find a token; after a restore into another home, how to make one."""
    from registry import tokens

    file = settings.admin_token_file
    with database.read() as session:
        held = tokens.holds_a_token(session, file)
    if held:
        return f"The admin token lies in {file}"
    return (
        f"No token of this registry lies in {file}. Use one that was given out before, or make one: "
        "`cairn-server token create NAME --scope admin`"
    )


def _run(settings: Settings, database: "Database") -> None:
    """Serve until stopped. The address is taken first: what is printed then is true. Raises AddressTaken."""
    import uvicorn

    from api.looking import Lookout
    from api.main import create_app
    from api.watchdog import Watchdog
    from api.worker import WorkerBeside

    sys.setswitchinterval(0.0005)  # a thread that holds the writer waits less for the others: 5% more registrations
    listening = _listen(settings)
    try:
        click.echo(f"\nOpen this link in a browser (good once, for an hour):\n\n  {_login_link(settings, database)}\n")
    except RegistryError:
        click.echo(f"\nServing on {settings.base_url}; log in there with a token.\n")
    click.echo(f"{where_the_token_lies(settings, database)}\n")
    sys.stdout.flush()
    app = create_app(settings, database)
    config = uvicorn.Config(app, access_log=False, log_config=None)
    gc.freeze()  # what is loaded by now stays: looking through it again took 130 ms in every second large answer
    later = threading.Timer(LATER_SECONDS, _load_later, (app.state.later,))
    later.daemon = True
    later.start()
    watchdog = Watchdog(database, settings.watch_seconds, settings.lost_after_seconds, settings.stalled_after_seconds)
    watchdog.start()
    lookout = Lookout(database)
    lookout.start()
    beside = WorkerBeside() if settings.worker and database.is_sqlite else None
    if beside is not None:
        beside.start()
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        later.cancel()
        if beside is not None:
            beside.stop()
        watchdog.stop()
        lookout.stop()


def _load_later(later: "LaterRoutes") -> None:
    later.load()
    gc.freeze()


def _listen(settings: Settings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        cause = error.strerror or error
        raise AddressTaken(f"Cannot listen on {where}: {cause}. Set CAIRN_PORT or CAIRN_HOST to another one.") from None
    return listening


def run() -> None:
    """The entry point: an error of ours is one line, not a traceback."""
    try:
        main(standalone_mode=True)
    except RegistryError as error:
        click.echo(f"{error.title}: {error.message}", err=True)
        sys.exit(1)
    except Exception as error:
        told = _told_of_the_database(error)
        if not told:
            raise
        click.echo(told, err=True)
        sys.exit(1)


def _told_of_the_database(error: Exception) -> str:
    """A database that is away or damaged, in one line; '' where the error is another one."""
    from sqlalchemy.exc import OperationalError

    if damage := damage_of(error):
        return f"The database cannot be read: {damage}. {WAY_OUT}."
    if not isinstance(error, OperationalError):
        return ""
    reason = str(error.orig).strip().splitlines()[0]
    return f"The database does not answer: {reason} (CAIRN_DATABASE_URL says where it is)."
