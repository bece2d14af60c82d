"""Opens runs and attempts for the records of a spool, and decides what an attempt loaded where nobody said it."""

import json
import shlex
from collections.abc import Callable
from typing import Any

from cairn.client import Client
from cairn.errors import AttemptWouldRestart, CairnError, Invalid
from cairn.spool.backlog import Backlog
from cairn.spool.frames import Framed
from cairn.spool.origin import Committed, Evidence, explain, loaded_by_steps
from cairn.spool.partly import named_places, without
from cairn.types import Attempt

DECISION = "decision.json"
_WHAT = (
    "supersede what is there. To start over on purpose: cairn.start(..., restart=True), or now `{flush} --restart`. "
    "Where it went on from a checkpoint: resumed_from=..., or `{flush} --resumed-from STEP`. "
    "Where it is something new: give it another run name."
)
_OTHERS = (
    "records of an earlier job, of run {run!r}, wait, since what it loaded is not known; those of this job are not "
    "held up. `{flush} --restart`, or --resumed-from STEP, sends them; `cairn spool discard {folder}` throws them away."
)


class StreamWaits(Exception):
    """The records of one attempt cannot be sent just now; the message says for what they wait."""


class Attempts:
    """What the service calls each attempt of the spool. Facts are kept with the spool's own state."""

    def __init__(
        self,
        backlog: Backlog,
        client: Client,
        preparer: Any,
        warn: Callable[[str], None],
        refuse: Callable[[dict[str, Any], Any, CairnError | str], None],
        *,
        is_own: bool = True,
    ) -> None:
        self._backlog, self.client, self._preparer, self._is_own = backlog, client, preparer, is_own
        self._began: dict[str, dict[str, Any]] = {}
        self._warn, self._refuse = warn, refuse

    def opened(self, key: str) -> dict[str, Any]:
        """Project, run, run_id, number and code of an attempt that was opened. Raises `StreamWaits`."""
        facts = self._backlog.stream(key).facts
        if "number" not in facts:
            raise StreamWaits("the record of its start is missing")
        return facts

    def start(self, framed: Framed) -> None:
        """The run and its attempt, made where they are absent. Raises `StreamWaits`, `CairnError`."""
        record, key = framed.record, framed.record["key"]
        known = self._backlog.prepared.get(framed.number)
        body = known["body"] if known else self._prepared(record)
        if not known:
            self._backlog.prepare(framed.number, key, body)
        run_id = self._run(record, body["run"])
        facts = {"project": record["project"], "run": record["run"], "run_id": run_id, **body["facts"]}
        number = self._open(key, facts, body["attempt"], record)
        self._keep(key, {**facts, "number": number})

    def follow(self, framed: Framed) -> None:
        """The attempt that going back in steps has opened, in the same process. Raises as `start` does."""
        record, key = framed.record, framed.record["key"]
        before = self._backlog.stream(record["after"]).facts
        if "number" not in before:
            raise StreamWaits("the attempt before it waits")
        body: dict[str, Any] = {"started_at": record["at"], "reason": record["reason"]}
        for name in ("command", "nodes"):
            if name in before.get("again", {}):
                body[name] = before["again"][name]
        if loaded := record.get("loaded"):
            number = self._backlog.stream(loaded["key"]).facts.get("number", before["number"])
            body["resumed_from"] = {"attempt": number, "step": loaded["step"], "kind": loaded["kind"]}
        number = self._open(key, before, body, record)
        self._keep(key, {**before, "number": number})

    def _prepared(self, record: dict[str, Any]) -> dict[str, Any]:
        """What is sent for a start; where it cannot be made, only that the run began: what happens in it goes on."""
        try:
            body: dict[str, Any] = self._preparer.start(record)
        except Exception as fault:
            self._refuse(record, None, Invalid(f"{type(fault).__name__}: {fault}", code="not-sendable"))
            return {"run": {}, "attempt": {"restart": True} if record.get("restart") is True else {}, "facts": {}}
        return body

    def _keep(self, key: str, facts: dict[str, Any]) -> None:
        self._backlog.stream(key).facts = {**facts, "began": self._began.pop(key, {})}
        self._backlog.keep()

    def _run(self, record: dict[str, Any], fields: dict[str, Any]) -> str:
        self.client.create_project(record["project"])
        try:
            # No warning: a config that changed since the run's first start is recorded with the attempt.
            return self.client.create_run(record["project"], record["run"], **fields, warn=False).id
        except Invalid as fault:
            if not fields:
                raise
            self._refuse(record, fields, fault)  # what describes the run is set aside, what happens in it goes on
            kept, left_out = without(fields, named_places(fault), essential=())
            return self._run(record, kept if left_out else {})

    def _open(self, key: str, facts: dict[str, Any], body: dict[str, Any], record: dict[str, Any]) -> int:
        run_id = facts["run_id"]
        try:
            return self._start(run_id, key, body, record)
        except AttemptWouldRestart as fault:
            meant = self._decision(facts) or self._assumed(key, facts, fault)
        except _UnknownOrigin as fault:
            if not (meant := self._decision(facts)):
                return self._open_without_origin(key, facts, body, record, fault)
        if reasons := [each["reason"] for each in (body, meant) if each.get("reason")]:
            meant["reason"] = "; ".join(reasons)
        told = {name: value for name, value in body.items() if name not in ("resumed_from", "restart")}
        try:
            number = self._start(run_id, key, {**told, **meant}, record)
        except _UnknownOrigin as fault:
            raise StreamWaits(self._say_unknown(facts, fault)) from None
        (self._backlog.folder / DECISION).unlink(missing_ok=True)
        return number

    def _open_without_origin(
        self, key: str, facts: dict[str, Any], body: dict[str, Any], record: dict[str, Any], fault: "_UnknownOrigin"
    ) -> int:
        """An attempt whose origin the service does not know. On a run that has no committed checkpoint it supersedes
        nothing without it; else it waits for a word. Raises `StreamWaits`, `CairnError`."""
        said = f"what it loaded is unknown: resumed_from={body['resumed_from']!r:.200} names no checkpoint here"
        reason = "; ".join(each for each in (body.get("reason"), said) if each)
        told = {name: value for name, value in body.items() if name != "resumed_from"}
        try:
            number = self._start(facts["run_id"], key, {**told, "reason": reason}, record)
        except AttemptWouldRestart:
            raise StreamWaits(self._say_unknown(facts, fault)) from None
        self._warn(f"run {facts['run']!r}: {said} ({fault}); its records are sent all the same.")
        return number

    def _start(self, run_id: str, key: str, body: dict[str, Any], record: dict[str, Any]) -> int:
        """No warning of what stays as it was: `cairn exec` may have opened the same attempt in words of its own."""
        if not isinstance(body.get("resumed_from"), (str, dict, type(None))):  # an older client has prepared it so
            raise _UnknownOrigin("it is no id, no step and no object")
        try:
            return self._opened(key, self.client.start_attempt(run_id, key=key, **body, warn=False))
        except Invalid as fault:
            if any(each.pointer.startswith("/resumed_from") for each in fault.errors):
                raise _UnknownOrigin(fault.errors[0].message) from None
            kept: dict[str, Any] = {
                name: body[name] for name in ("resumed_from", "restart", "started_at") if name in body
            }
            if kept == body:
                raise
            self._refuse(record, body, fault)  # what describes the attempt is set aside, what happens in it goes on
            rest, left_out = without(body, named_places(fault), essential=kept)
            return self._start(run_id, key, rest if left_out else kept, record)

    def _opened(self, key: str, attempt: Attempt) -> int:
        """Its number; what the service says that it loaded is kept for the `cairn.json` of its checkpoints."""
        point = {name: value for name, value in (attempt.raw.get("resumed_from") or {}).items() if value is not None}
        point.pop("checkpoint_id", None)  # ids do not outlive a registry
        self._began[key] = {"resumed_from": point} if point else {"restart": True} if attempt.raw.get("restart") else {}
        return attempt.number

    def _decision(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What a person has said of this run afterwards, with `cairn spool flush --restart` or `--resumed-from`."""
        try:
            said = dict(json.loads((self._backlog.folder / DECISION).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return {}
        meant = said.pop("run", None)
        return said if meant in (None, f"{facts['project']}/{facts['run']}", facts["run_id"]) else {}

    def _assumed(self, key: str, facts: dict[str, Any], fault: CairnError) -> dict[str, Any]:
        first = self._first_step(key)
        if first is None:
            raise StreamWaits("nobody said what it loaded, and it has no step yet that could tell") from None
        found = loaded_by_steps(first, self._committed(facts["run_id"], first.step))
        if found is None:
            waits = (
                f"run {facts['run']!r} has committed checkpoints, and this execution began at step {first.step} "
                "without saying what it loaded"
            )
            kept = f"Its records are kept in {self._backlog.folder} and are not sent, since they would "
            kept += _WHAT.format(flush=_flush_of(facts))
            self._warn(f"{waits}. {kept}" if self._is_own else self._of_another(facts))
            raise StreamWaits(waits) from fault
        point = {"attempt": found.attempt, "step": found.step, "kind": found.kind}
        self._warn(f"run {facts['run']!r}: {explain(first, found)}. Say cairn.start(resumed_from=...) to be sure.")
        return {"resumed_from": point, "reason": explain(first, found)}

    def _first_step(self, key: str) -> Evidence | None:
        for framed in self._backlog.records():
            record = framed.record
            if record["key"] != key:
                continue
            if record.get("kind") in ("saving", "saved"):
                if "began" in record:
                    return Evidence(record["began"], is_save=False)
                return Evidence(record["step"], is_save=True)
            if record.get("kind") == "points":
                steps = [curve["steps"][0] for curve in record["curves"].values() if curve["steps"]]
                if steps:
                    return Evidence(min(steps), is_save=False)
        return None

    def _committed(self, run_id: str, through: int) -> list[Committed]:
        """The newest live ones at or before a step."""
        rule = f"run.id = '{run_id}' and not superseded and step <= {through}"
        found = self.client.iter_checkpoints(filter=rule, order_by="step desc, attempt desc", limit=50)
        return [
            Committed(each.attempt or 1, each.step or 0, each.kind or "archive")
            for each in found
            if each.raw.get("state") == "committed"
        ]

    def _of_another(self, facts: dict[str, Any]) -> str:
        return str(_OTHERS.format(run=facts["run"], folder=self._backlog.folder, flush=_flush_of(facts)))

    def _say_unknown(self, facts: dict[str, Any], fault: "_UnknownOrigin") -> str:
        self._warn(
            f"run {facts['run']!r}: what this execution resumed from is not known to the service ({fault}). Its "
            f"records are kept in {self._backlog.folder}; say `{_flush_of(facts)} --resumed-from STEP` or `--restart`."
            if self._is_own
            else self._of_another(facts)
        )
        return f"what it resumed from is not known to the service: {fault}"


def _flush_of(facts: dict[str, Any]) -> str:
    """The command for this run: the word for one must never supersede checkpoints of another."""
    return f"cairn spool flush --run {shlex.quote(facts['project'] + '/' + facts['run'])}"


class _UnknownOrigin(Exception):
    """The service does not know what an attempt says it has loaded."""
