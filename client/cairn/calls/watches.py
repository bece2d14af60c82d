"""Standing watches on runs and aliases, and what they found."""

from collections.abc import Iterator, Mapping, Sequence

from cairn.calls.base import Calls, RunLike, answer_items, given, id_of, pages, segment
from cairn.reading import build
from cairn.types import Finding, FindingPage, Watch


class WatchCalls(Calls):
    """A watch that is made again is the same watch."""

    def stand_watch(
        self,
        run: RunLike | None = None,
        *,
        alias: str | None = None,
        kind: str | None = None,
        watch: Mapping[str, str] | None = None,
        note: str | None = None,
    ) -> Watch:
        """Tests each arriving score of a run, or of an `alias` ('project/name'), from now on.

        `watch` is `{"benchmark": ...}` or `{"capability": ...}`; without it, all capabilities together. `kind` "loss"
        watches a run's loss for spikes instead.
        """
        body = given(run_id=None if run is None else id_of(run), alias=alias, kind=kind, watch=watch, note=note)
        return build(Watch, self._send("POST", "/watches", body, idempotent=True))

    def list_watches(self, *, project: str | None = None, run: RunLike | None = None) -> tuple[Watch, ...]:
        """The newest 50 watches, those that ended included."""
        query = given(project=project, run_id=None if run is None else id_of(run))
        return answer_items(self._fetch("/watches", **query), Watch)

    def end_watch(self, watch: str | Watch) -> Watch:
        """Looks no more; what it found stays."""
        identity = watch if isinstance(watch, str) else watch.id
        return build(Watch, self._send("PATCH", f"/watches/{segment(identity)}", {"state": "ended"}, idempotent=True))

    def list_findings(
        self,
        *,
        project: str | None = None,
        run: RunLike | None = None,
        state: Sequence[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FindingPage:
        """What watches found, the newest first; `state` any of open, acknowledged, withdrawn."""
        query = given(
            project=project,
            run_id=None if run is None else id_of(run),
            state=list(state) or None,
            limit=limit,
            cursor=cursor,
        )
        return build(FindingPage, self._fetch("/findings", **query))

    def iter_findings(
        self, *, project: str | None = None, run: RunLike | None = None, state: Sequence[str] = ()
    ) -> Iterator[Finding]:
        """Every finding, page by page."""
        return pages(lambda cursor: self.list_findings(project=project, run=run, state=state, cursor=cursor), None)

    def get_finding(self, finding: str) -> Finding:
        return self._get(Finding, f"/findings/{segment(finding)}")

    def acknowledge_finding(self, finding: str | Finding, *, note: str | None = None) -> Finding:
        """Says that somebody has seen it; who was first stays named."""
        identity = finding if isinstance(finding, str) else finding.id
        body = {"state": "acknowledged", **given(note=note)}
        return build(Finding, self._send("PATCH", f"/findings/{segment(identity)}", body, idempotent=True))
