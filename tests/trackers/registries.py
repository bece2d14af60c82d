"""A registry as the tests of trackers use it: what waits is done at once, without the pauses between tries."""

from pathlib import Path
from typing import Any

from sqlalchemy import func, select, update

from registry.config import Settings
from registry.db import Base, Database, now
from registry.jobs.queue import JobRow, get_job, list_jobs
from registry.jobs.worker import JobWorker
from registry.models import Job
from registry.projects import create_project
from registry.trackers.imports import ask_for_import
from registry.trackers.linking import LinkRow, ask_for_refresh, get_link, link_run
from registry.trackers.links import read_link
from registry.trackers.schedule import want_pushes_of_project
from registry.trackers.settings import change_tracking

ASIDE = {"job", "worker", "outbox", "tracker_state", "audit_entry"}


class Registry:
    """`project` is where everything goes; `allowed` are the hosts that may be called."""

    def __init__(self, database: Database, folder: Path, allowed: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self.database = database
        self.settings = Settings(
            folder,
            database.url.render_as_string(hide_password=False),
            tracker_hosts=allowed,
            public_url="https://cairn.example",
        )
        self.worker = JobWorker(database, self.settings)
        with database.write() as session:
            self.project, _ = create_project(session, "p")

    def work(self, tries: int = 200) -> None:
        for _ in range(tries):
            self.hurry()
            if not self.worker.work_once():
                return

    def hurry(self) -> None:
        """Whatever waits for a pause is due now."""
        with self.database.write() as session:
            session.execute(update(Job).where(Job.state == "waiting").values(not_before=now()))

    def ask(self, uri: str, experiment: str) -> int:
        with self.database.write() as session:
            place = {"kind": "mlflow", "uri": uri, "entity": None, "project": experiment}
            return ask_for_import(session, self.project.id, place, actor="jane").id

    def job(self, job_id: int) -> JobRow:
        with self.database.read() as session:
            return get_job(session, job_id)

    def jobs(self) -> list[JobRow]:
        with self.database.read() as session:
            return list_jobs(session)

    def import_experiment(self, uri: str, experiment: str) -> dict[str, Any]:
        """The report of an import that went well."""
        job_id = self.ask(uri, experiment)
        self.work()
        job = self.job(job_id)
        assert job.state == "done", job.error
        return dict(job.report or {})

    def push(self, **changes: Any) -> None:
        """Push everything that a project has."""
        with self.database.write() as session:
            change_tracking(session, self.project.id, {"push_mlflow": True, **changes}, actor="jane")
            want_pushes_of_project(session, self.project.id)
        self.work()

    def link(self, run_id: int, url: str) -> LinkRow:
        """A link, as it stands after its first look."""
        with self.database.write() as session:
            link, _ = link_run(session, run_id, read_link(url), actor="jane")
        self.work()
        return self.link_now(link.id)

    def refresh(self, link_id: int) -> LinkRow:
        with self.database.write() as session:
            ask_for_refresh(session, get_link(session, link_id), actor="jane")
        self.work()
        return self.link_now(link_id)

    def link_now(self, link_id: int) -> LinkRow:
        with self.database.read() as session:
            return get_link(session, link_id)

    def counts(self) -> dict[str, int]:
        """Rows of every table but those that say when somebody looked."""
        with self.database.read() as session:
            tables = [table for name, table in Base.metadata.tables.items() if name not in ASIDE]
            return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in tables}
