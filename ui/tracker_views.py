"""How links to trackers and durable jobs are shown: plain values for the templates, made from the registry's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from registry.ids import to_text
from registry.integrations.disagreements import FieldView, PathChange
from registry.jobs.queue import JobRow
from registry.jobs.workers import WorkerRow
from registry.trackers.linking import LinkRow
from ui import filters
from ui.contexts import Answer, Chip, Command, Fact, Link

TITLES: Final = {"mlflow": "MLflow", "wandb": "W&B"}
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "new": ("not read yet", "unknown"),
    "ok": ("in step", "good"),
    "unreachable": ("does not answer", "warn"),
    "refused": ("refuses us", "bad"),
    "not-found": ("has no such run", "bad"),
    "deleted": ("has the run in its bin", "warn"),
    "not-allowed": ("may not be called", "bad"),
    "untrusted-certificate": ("shows an untrusted certificate", "bad"),
    "redirected": ("sends us elsewhere", "bad"),
    "not-a-tracker": ("does not answer as a tracker", "bad"),
    "failed": ("could not be read", "bad"),
}
PUSHES: Final[Mapping[str, tuple[str, str]]] = {
    "off": ("not told of checkpoints", "plain"),
    "waiting": ("will be told", "unknown"),
    "ok": ("knows the checkpoints", "good"),
    "failed": ("could not be told", "bad"),
}
JOB_TONES: Final = {"waiting": "unknown", "running": "good", "done": "plain", "failed": "bad", "cancelled": "warn"}
KINDS: Final = {
    "tracker.import": "import from a tracker",
    "tracker.refresh": "read a linked run",
    "tracker.push": "tell a tracker",
}


@dataclass(frozen=True)
class TrackerRow:
    """A link; `words` and `tone` say how it stands, `pushed` and `push_tone` what the tracker knows of checkpoints."""

    id: str
    title: str
    name: str
    where: str
    href: str | None
    words: str
    tone: str
    error: str
    external_state: str
    read_at: datetime | None
    pushed: str
    push_tone: str
    push_error: str


@dataclass(frozen=True)
class DisagreementRow:
    """A field on which the trackers and the registry do not agree: (who, value, how long) of each."""

    field: str
    said: tuple[tuple[str, str, datetime | None], ...]
    paths: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class TrackersBlock:
    run_id: str
    rows: tuple[TrackerRow, ...]
    disagreements: tuple[DisagreementRow, ...]
    may_link: bool


@dataclass(frozen=True)
class TrackersContext:
    run_name: str
    project: str
    answer: Answer
    block: TrackersBlock
    typed: str = ""
    problem: str = ""


@dataclass(frozen=True)
class JobLine:
    id: str
    kind: str
    project: str
    state: str
    tone: str
    progress: str
    error: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class JobsContext:
    answer: Answer
    rows: tuple[JobLine, ...]
    states: tuple[Link, ...]
    workers: tuple[Chip, ...]
    older: str | None
    newer: str | None
    empty: tuple[Command, ...] = ()


@dataclass(frozen=True)
class JobContext:
    """`skipped`: (reason, how often, examples)."""

    line: JobLine
    answer: Answer
    facts: tuple[Fact, ...]
    report: tuple[Fact, ...]
    skipped: tuple[tuple[str, int, str], ...]
    notes: tuple[str, ...]
    may_cancel: bool


# What a job was asked, as its page says it.
ARGUMENTS = {"kind": "tracker", "project": "its project or experiment", "uri": "address", "link": "link to a tracker"}


def trackers_block(run_id: str, links: Sequence[LinkRow], views: Sequence[FieldView], may_link: bool) -> TrackersBlock:
    """What a run's page shows of its trackers."""
    disagreements = tuple(_disagreement(view) for view in views if not view.agree)
    return TrackersBlock(run_id, tuple(_tracker(link) for link in links), disagreements, may_link)


def trackers_answer(links: Sequence[LinkRow], block: TrackersBlock) -> Answer:
    if not links:
        return Answer("This run is linked to no experiment tracker.", "unknown")
    wrong = [row for row in block.rows if row.tone in ("bad", "warn")]
    if wrong:
        return Answer(f"{wrong[0].title} {wrong[0].words}. {wrong[0].error}".strip(), wrong[0].tone)
    if block.disagreements:
        count = filters.plural(len(block.disagreements), "field", "fields")
        return Answer(f"In step, but {count} read differently there and here.", "warn")
    names = " and ".join(dict.fromkeys(row.title for row in block.rows))
    return Answer(f"Linked to {names}.", "good" if all(row.tone == "good" for row in block.rows) else "plain")


def job_line(row: JobRow) -> JobLine:
    total = "" if row.progress_total is None else f" of {filters.grouped(row.progress_total)}"
    done = f"{filters.grouped(row.progress_done)}{total}" if row.progress_done or row.progress_total else ""
    return JobLine(
        to_text(row.id),
        KINDS.get(row.kind, row.kind),
        row.project,
        row.state,
        JOB_TONES.get(row.state, "unknown"),
        row.progress_text or done,
        row.error or "",
        row.created_at,
        row.ended_at,
    )


def job_context(row: JobRow, may_write: bool, run: Link | None = None) -> JobContext:
    """`run`: the run that it is about, where it is about one."""
    line = job_line(row)
    report = dict(row.report or {})
    skipped, notes = report.pop("skipped", {}), report.pop("notes", [])
    facts = [Fact("asked by", row.asked_by), Fact("tried", filters.plural(row.claims, "time", "times"))]
    facts += [
        Fact(ARGUMENTS.get(name, name.replace("_", " ")), _argument(name, value))
        for name, value in row.arguments.items()
        if value not in (None, "")
    ]
    facts += [Fact("run", run.text, href=run.href)] if run else []
    if row.worker:
        facts.append(Fact("worker", row.worker))
    return JobContext(
        line,
        _job_answer(row, line),
        tuple(facts),
        tuple(Fact(name.replace("_", " "), str(value)) for name, value in report.items()),
        tuple((reason, entry["count"], "; ".join(entry["examples"])) for reason, entry in skipped.items()),
        tuple(notes),
        may_write and row.state in ("waiting", "running"),
    )


def _argument(name: str, value: Any) -> str:
    return TITLES.get(str(value), str(value)) if name == "kind" else str(value)


def jobs_answer(rows: Sequence[JobRow], workers: Sequence[WorkerRow]) -> Answer:
    """What matters first: that nobody works, then what failed, then what goes on."""
    alive = [worker for worker in workers if worker.alive]
    waiting = [row for row in rows if row.state in ("waiting", "running")]
    if waiting and not alive:
        count = filters.plural(len(waiting), "job waits", "jobs wait")
        return Answer(f"{count} and no worker is running.", "bad", "Start one with ‘cairn-server worker’.")
    failed = [row for row in rows if row.state == "failed"]
    stuck = [row for row in waiting if row.error]
    if failed or stuck:
        first = (failed or stuck)[0]
        count = filters.plural(len(failed) + len(stuck), "job", "jobs")
        return Answer(f"{count} met a problem; the newest: {first.error}", "bad" if failed else "warn")
    if waiting:
        return Answer(f"{filters.plural(len(waiting), 'job is', 'jobs are')} on the way.", "good")
    return Answer("Nothing waits to be done.", "plain")


def worker_chips(workers: Sequence[WorkerRow]) -> tuple[Chip, ...]:
    return tuple(Chip(f"{filters.middle(row.name, 40)}{'' if row.alive else ', silent'}") for row in workers)


def _job_answer(row: JobRow, line: JobLine) -> Answer:
    if row.error and row.state != "done":
        again = " It is tried again." if row.state in ("waiting", "running") else ""
        return Answer(f"{row.error}{again}", "warn" if again else "bad")
    words = {"waiting": "Waits for a worker.", "running": "Runs.", "done": "Done.", "cancelled": "Cancelled."}
    return Answer(f"{words.get(row.state, row.state)} {line.progress}".strip(), line.tone)


def _tracker(link: LinkRow) -> TrackerRow:
    words, tone = STATES.get(link.state, (link.state, "unknown"))
    pushed, push_tone = PUSHES.get(link.push_state, (link.push_state, "unknown"))
    return TrackerRow(
        to_text(link.id),
        TITLES.get(link.kind, link.kind),
        filters.middle(link.external_name or link.external_run_id, 60),
        filters.middle(_where(link), 80),
        _page_of(link),
        words,
        tone,
        link.error or "",
        link.external_state or "",
        link.synced_at,
        pushed,
        push_tone,
        link.push_error or "",
    )


def _where(link: LinkRow) -> str:
    place = "/".join(part for part in (link.entity, link.external_project) if part)
    return " · ".join(part for part in (link.uri or "its default server", place) if part)


def _page_of(link: LinkRow) -> str | None:
    """The run's own page in the tracker."""
    if link.kind == "wandb" and link.entity and link.external_project:
        host = "https://wandb.ai" if link.uri in ("", "https://api.wandb.ai") else link.uri
        return f"{host}/{link.entity}/{link.external_project}/runs/{link.external_run_id}"
    if link.kind == "mlflow" and link.uri.startswith(("http://", "https://")) and link.external_project:
        return f"{link.uri}/#/experiments/{link.external_project}/runs/{link.external_run_id}"
    return link.uri if link.uri.startswith(("http://", "https://")) else None


def _disagreement(view: FieldView) -> DisagreementRow:
    said: list[tuple[str, str, datetime | None]] = []
    if view.here is not None:
        said.append(("here", _shown(view.field, view.here), None))
    said += [(TITLES.get(each.kind, each.kind), _shown(view.field, each.value), each.changed_at) for each in view.said]
    return DisagreementRow(view.field, tuple(said), tuple(_path(change) for change in view.paths))


def _path(change: PathChange) -> tuple[str, str, str]:
    return change.path, _text(change.here), _text(change.there)


def _shown(field: str, value: Any) -> str:
    return f"{str(value)[:12]}…" if field == "config" else filters.middle(_text(value), 80)


def _text(value: Any) -> str:
    return "–" if value is None else filters.middle(str(value), 80)
