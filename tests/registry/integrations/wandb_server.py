"""A small W&B on the loopback: the part of its GraphQL schema that its library asks for, over state that tests read.

Every question is checked against the schema by a real GraphQL library: fields that are not there, variables of a wrong
type and filters that it does not know are errors, as they are with W&B.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import graphql

KEY = "k" * 40
SCHEMA = graphql.build_schema("""
scalar JSONString
scalar JSON
scalar Int64
scalar DateTime
type Query {
  viewer: User
  serverInfo: ServerInfo
  project(name: String, entityName: String): Project
}
type Mutation { upsertBucket(input: UpsertBucketInput!): UpsertBucketPayload }
input UpsertBucketInput {
  id: String, tags: [String!], summaryMetrics: JSONString, config: JSONString, description: String,
  displayName: String, notes: String, groupName: String, jobType: String
}
type UpsertBucketPayload { bucket: Run }
type ServerInfo { features: [Feature!]! }
type Feature { name: String!, isEnabled: Boolean! }
type User { id: ID!, entity: String, username: String, name: String, email: String, flags: JSONString, teams: Teams }
type Teams { edges: [TeamEdge!]! }
type TeamEdge { node: Entity }
type Entity { id: ID, name: String! }
type Project {
  id: ID, internalId: ID, name: String, entity: Entity, readOnly: Boolean, runCount(filters: JSONString): Int
  runs(filters: JSONString, after: String, first: Int, order: String): Runs
  run(name: String!): Run
}
type Runs { edges: [RunEdge!]!, pageInfo: PageInfo! }
type RunEdge { node: Run!, cursor: String! }
type PageInfo { endCursor: String, hasNextPage: Boolean! }
type Run {
  id: ID!, name: String!, displayName: String, state: String, tags: [String!], sweepName: String, config: JSONString
  group: String, jobType: String, commit: String, readOnly: Boolean, createdAt: DateTime, heartbeatAt: DateTime
  description: String, notes: String, systemMetrics: JSONString, summaryMetrics: JSONString, historyLineCount: Int
  user: User, historyKeys: JSON, projectId: ID
  parquetHistory(liveKeys: [String!]!): ParquetHistory
  history(minStep: Int64, maxStep: Int64, samples: Int): [String!]
  outputArtifacts(after: String, first: Int): Artifacts
  inputArtifacts(after: String, first: Int): Artifacts
}
type ParquetHistory { parquetUrls: [String!], liveData: JSON }
type Artifacts { totalCount: Int, pageInfo: PageInfo!, edges: [ArtifactEdge!]! }
type ArtifactEdge { node: Artifact! }
type Artifact {
  id: ID!, artifactSequence: ArtifactSequence!, versionIndex: Int, artifactType: ArtifactType!, description: String
  metadata: JSONString, ttlDurationSeconds: Int64, ttlIsInherited: Boolean, tags: [Tag!], historyStep: Int64
  state: String, size: Int64, digest: String, commitHash: String, fileCount: Int64, createdAt: DateTime
  updatedAt: DateTime, aliases: [ArtifactAlias!]!
}
interface ArtifactCollection { name: String!, project: Project }
type ArtifactSequence implements ArtifactCollection { name: String!, project: Project }
type ArtifactType { name: String! }
type ArtifactAlias { id: ID!, alias: String!, artifactCollection: ArtifactCollection }
type Tag { id: ID!, name: String! }
""")
Doc = dict[str, Any]


@dataclass
class Wandb:
    """The state, and how the server behaves. `fault`: a status that every answer has, or seconds to wait before it."""

    url: str = ""
    runs: dict[str, Doc] = field(default_factory=dict)
    histories: dict[str, list[Doc]] = field(default_factory=dict)
    logged: dict[str, list[Doc]] = field(default_factory=dict)
    used: dict[str, list[Doc]] = field(default_factory=dict)
    asked: list[tuple[str, Doc]] = field(default_factory=list)  # operation and variables
    errors: list[str] = field(default_factory=list)  # questions that the schema refuses
    fault: int = 0
    slow_seconds: float = 0.0
    ending: threading.Event = field(default_factory=threading.Event)  # nothing is waited for any more
    fails_after: int | None = None  # answers before the fault begins
    redirect: str = ""
    body: bytes = b""  # what it answers instead of GraphQL
    forgets_writes: bool = False
    project: str = "llm"

    def add_run(self, name: str, **fields: Any) -> Doc:
        number = len(self.runs) + 1
        config = {key: {"value": value, "desc": None} for key, value in fields.pop("config", {}).items()}
        self.runs[name] = {
            "id": f"bucket-{name}",
            "name": name,
            "displayName": name,
            "state": "finished",
            "tags": [],
            "sweepName": None,
            "group": None,
            "jobType": None,
            "commit": None,
            "readOnly": False,
            "description": "",
            "notes": "",
            "createdAt": f"2026-11-{1 + number // 24:02d}T{number % 24:02d}:00:00",
            "heartbeatAt": "2026-11-28T01:00:00",
            "systemMetrics": "{}",
            "historyLineCount": 0,
            "user": {"id": "u", "name": "Ann", "username": "ann"},
            "projectId": "1",
            "config": json.dumps(config),
            "summaryMetrics": json.dumps(fields.pop("summary", {})),
            **fields,
        }
        return self.runs[name]

    def log(self, run: str, index: int, values: Mapping[str, Any]) -> None:
        row = {"_step": index, "_timestamp": 1_795_000_000.0 + index, "_runtime": index, **values}
        self.histories.setdefault(run, []).append(row)

    def add_artifact(
        self,
        run: str,
        name: str,
        *,
        aliases: tuple[str, ...] = (),
        metadata: Doc | None = None,
        type: str = "model",
        version: int = 0,
        used: bool = False,
        history_step: int | None = None,
    ) -> None:
        project = {"id": "p", "internalId": "1", "name": self.project, "entity": {"id": "e", "name": "team"}}
        collection = {"__typename": "ArtifactSequence", "name": name, "project": project}
        artifact = {
            "id": f"{run}-{name}-{version}",
            "artifactSequence": collection,
            "versionIndex": version,
            "artifactType": {"name": type},
            "metadata": json.dumps(metadata or {}),
            "historyStep": history_step,
            "state": "COMMITTED",
            "size": 1234,
            "digest": f"digest-{name}-{version}",
            "commitHash": "h",
            "fileCount": 2,
            "createdAt": "2026-11-10T00:00:00Z",
            "updatedAt": None,
            "description": None,
            "tags": [],
            "ttlDurationSeconds": -2,
            "ttlIsInherited": True,
            "aliases": [
                {"id": f"a{at}", "alias": alias, "artifactCollection": collection} for at, alias in enumerate(aliases)
            ],
        }
        (self.used if used else self.logged).setdefault(run, []).append(artifact)

    def answer(self, question: Doc) -> Doc:
        text, variables = question["query"], question.get("variables") or {}
        document = graphql.parse(text)
        name = document.definitions[0].name  # type: ignore[attr-defined]
        self.asked.append((name.value if name else "", variables))
        faults = graphql.validate(SCHEMA, document)
        if faults:
            self.errors += [f"{name and name.value}: {fault.message}" for fault in faults]
            return {"errors": [{"message": fault.message} for fault in faults]}
        root = {"viewer": self._viewer(), "serverInfo": {"features": []}, "project": self._project}
        done = graphql.execute_sync(
            SCHEMA, document, {**root, "upsertBucket": self._upsert}, variable_values=variables, type_resolver=_type_of
        )
        self.errors += [f"{name and name.value}: {fault.message}" for fault in done.errors or ()]
        return done.formatted  # type: ignore[return-value]

    def _viewer(self) -> Doc:
        user = {
            "id": "u",
            "entity": "team",
            "username": "ann",
            "name": "Ann",
            "email": "ann@example.org",
            "flags": "{}",
        }
        return {**user, "teams": {"edges": []}}

    def _project(self, info: Any, name: str = "", entityName: str = "") -> Doc | None:
        if (entityName, name) != ("team", self.project):
            return None
        return {
            "id": "p",
            "internalId": "1",
            "name": name,
            "readOnly": False,
            "runCount": lambda info, filters="{}": len(self._selected(filters)),
            "runs": self._page_of_runs,
            "run": lambda info, name: self._run(name),
        }

    def _selected(self, filters: str) -> list[Doc]:
        wanted = json.loads(filters)
        unknown = set(wanted) - {"created_at"}
        if unknown or set(wanted.get("created_at", {})) - {"$gte"}:
            raise ValueError(f"unknown filter {filters}")
        since = wanted.get("created_at", {}).get("$gte", "")
        runs = sorted(self.runs.values(), key=lambda run: run["createdAt"])
        return [run for run in runs if run["createdAt"] >= since]

    def _page_of_runs(self, info: Any, filters: str = "{}", after: str = "", first: int = 50, order: str = "") -> Doc:
        if order != "+created_at":
            raise ValueError(f"unknown order {order}")
        runs = self._selected(filters)
        start = int(after or 0)
        some = runs[start : start + first]
        edges = [{"node": self._run(run["name"]), "cursor": str(start + at + 1)} for at, run in enumerate(some)]
        more = start + len(some) < len(runs)
        return {"edges": edges, "pageInfo": {"endCursor": str(start + len(some)), "hasNextPage": more}}

    def _run(self, name: str) -> Doc | None:
        run = self.runs.get(name)
        if run is None:
            return None
        rows = self.histories.get(name, [])
        last = max((row["_step"] for row in rows), default=-1)
        return {
            **run,
            "historyKeys": {"lastStep": last, "sets": [], "keys": {}},
            "parquetHistory": lambda info, liveKeys: {"parquetUrls": [], "liveData": None},
            "history": lambda info, minStep=0, maxStep=0, samples=500: _rows(rows, minStep, maxStep, samples),
            "outputArtifacts": _pages(self.logged.get(name, [])),
            "inputArtifacts": _pages(self.used.get(name, [])),
        }

    def _upsert(self, info: Any, input: Doc) -> Doc:
        run = next(run for run in self.runs.values() if run["id"] == input["id"])
        if not self.forgets_writes:
            run.update({name: value for name, value in input.items() if name != "id"})
        return {"bucket": run}


def _type_of(value: Any, info: Any, kind: Any) -> Any:
    return value.get("__typename")


def _rows(rows: list[Doc], start: Any, end: Any, most: int) -> list[str]:
    found = [row for row in rows if int(start) <= row["_step"] < int(end)]
    return [json.dumps(row, allow_nan=False) for row in found[:most]]


def _pages(artifacts: list[Doc]) -> Callable[..., Doc]:
    def page(info: Any, after: str | None = None, first: int = 100) -> Doc:
        start = int(after or 0)
        some = artifacts[start : start + first]
        more = start + len(some) < len(artifacts)
        info_of_page = {"endCursor": str(start + len(some)), "hasNextPage": more}
        return {"totalCount": len(artifacts), "pageInfo": info_of_page, "edges": [{"node": each} for each in some]}

    return page


def _handler(state: Wandb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            broken = state.fails_after is None or len(state.asked) >= state.fails_after
            if broken and state.slow_seconds:
                state.ending.wait(state.slow_seconds)
            if broken and state.redirect:
                self.send_response(307)
                self.send_header("Location", state.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if broken and state.fault:
                self.reply(state.fault, b"no")
                return
            if self.headers.get("Authorization", "") != "Basic " + _basic(f"api:{KEY}"):
                self.reply(401, b'{"errors": [{"message": "user is not logged in"}]}')
                return
            self.reply(200, state.body or json.dumps(state.answer(question)).encode())

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """Nothing: the test's output is for its failures."""

    return Handler


def _basic(pair: str) -> str:
    from base64 import b64encode

    return b64encode(pair.encode()).decode()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def running_wandb() -> Iterator[Wandb]:
    state = Wandb()
    server = _Quiet(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()
