"""What this process has answered, counted by route and status: ASGI middleware, and the form that Prometheus reads.

A request costs a few dictionary lookups. Its library is loaded only where somebody asks for the figures.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from registry.health.figures import Figures

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE: Final = "none"  # of what no route knows: its path is the caller's word and would never end
NO_STATUS: Final = "none"  # of what ended before an answer began

# (method, route, status), how many in each bucket, seconds of all
Answered = list[tuple[tuple[str, str, str], list[int], float]]


class Requests:
    """Durations by (method, route, status), in buckets. Written by the event loop alone."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], tuple[list[int], list[float]]] = {}

    def add(self, method: str, route: str, status: str, seconds: float) -> None:
        counts, total = self._seen.setdefault((method, route, status), ([0] * (len(BOUNDS) + 1), [0.0]))
        counts[bisect_left(BOUNDS, seconds)] += 1
        total[0] += seconds

    def copy(self) -> Answered:
        return [(labels, list(counts), total[0]) for labels, (counts, total) in self._seen.items()]


class Measured:
    """ASGI middleware: every request is counted when its answer is whole."""

    def __init__(self, app: ASGIApp, requests: Requests) -> None:
        self.app, self.requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), NO_STATUS

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.requests.add(method, route, status, time.perf_counter() - began)


def exposition(figures: "Figures", requests: Answered, version: str) -> bytes:
    """Prometheus' text format, with the figures of this process (memory, processor time, open files)."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collected([*_of_registry(figures), _of_requests(requests), _of_release(version)]))
    return generate_latest(registry)


class _Collected:
    """What was read already, in the shape that the library asks for."""

    def __init__(self, metrics: "list[Metric]") -> None:
        self._metrics = metrics

    def collect(self) -> "Iterator[Metric]":
        yield from self._metrics


def _of_registry(figures: "Figures") -> "Iterator[Metric]":
    runs = figures.running
    of_attempt = [(each.project, each.run, str(each.attempt)) for each in runs]
    labels = ("project", "run", "attempt")
    yield _gauge(
        "attempt_heartbeat_age_seconds",
        "Since the last heartbeat of a running attempt.",
        labels,
        [(key, each.heard_age) for key, each in zip(of_attempt, runs, strict=True)],
    )
    yield _gauge(
        "attempt_step",
        "The step that a running attempt's last heartbeat named.",
        labels,
        [(key, each.step) for key, each in zip(of_attempt, runs, strict=True) if each.step is not None],
    )
    yield _gauge(
        "attempt_checkpoint_age_seconds",
        "Since a running attempt saved its newest committed checkpoint.",
        labels,
        [(key, each.saved_age) for key, each in zip(of_attempt, runs, strict=True) if each.saved_age is not None],
    )
    yield _gauge(
        "incidents_open",
        "Interruptions that are not closed.",
        ("project", "kind", "cause"),
        [(tuple(key), count) for *key, count in figures.incidents],
    )
    yield _gauge(
        "findings_open",
        "Findings of watches that nobody has acknowledged.",
        ("project",),
        [((project,), count) for project, count in figures.findings],
    )
    yield _gauge(
        "jobs",
        "Durable jobs that wait or run.",
        ("kind", "state"),
        [((kind, state), count) for kind, state, count in figures.jobs],
    )
    yield _gauge("outbox_events", "Events that are not delivered yet.", (), [((), figures.events)])
    yield _gauge("outbox_age_seconds", "Since the oldest of them was written.", (), [((), figures.events_age)])
    yield _gauge("workers", "Workers heard of within 90 seconds.", (), [((), figures.workers)])


def _gauge(name: str, said: str, labels: tuple[str, ...], values: list[tuple[tuple[str, ...], Any]]) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    gauge = GaugeMetricFamily(f"cairn_{name}", said, labels=labels)
    for key, value in values:
        gauge.add_metric(key, value)
    return gauge


def _of_requests(requests: Answered) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    said = "Until the answer was whole, by route and status, in this process."
    metric = HistogramMetricFamily("cairn_http_request_seconds", said, labels=("method", "route", "status"))
    for labels, counts, total in requests:
        metric.add_metric(labels, _cumulated(counts), total)
    return metric


def _cumulated(counts: list[int]) -> list[tuple[str, float]]:
    names = (*(str(bound) for bound in BOUNDS), "+Inf")
    so_far = 0
    buckets = []
    for name, count in zip(names, counts, strict=True):
        so_far += count
        buckets.append((name, float(so_far)))
    return buckets


def _of_release(version: str) -> "Metric":
    return _gauge("build_info", "The release that runs.", ("version",), [((version,), 1)])
