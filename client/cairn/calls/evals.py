"""Scores, curves and result files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.calls.base import API, Calls, CheckpointLike, RunLike, answer_items, given, id_of, pages, segment
from cairn.calls.checkpoints import Scores, score_list
from cairn.reading import build
from cairn.transport import Call
from cairn.types import Benchmark, BenchmarkPage, Curve, ImportReport, Score, ScoreReport, SeriesReport

File = str | Path | tuple[str, bytes]


class EvalCalls(Calls):
    """How good a checkpoint is, as far as anybody measured."""

    def record_scores(self, checkpoint: CheckpointLike, scores: Scores) -> ScoreReport:
        """Adds results: `[{benchmark, metric, value, stderr, n_samples, n_shot, ...}]`, or `{"gsm8k": 0.61}`.

        A second evaluation is kept beside the first; an identical one adds nothing. NaN is a value.
        """
        path = f"/checkpoints/{segment(id_of(checkpoint))}/scores"
        return build(ScoreReport, self._send("POST", path, score_list(scores), idempotent=True))

    def list_scores(self, checkpoint: CheckpointLike) -> tuple[Score, ...]:
        """Every result of the checkpoint, re-evaluations included."""
        return answer_items(self._fetch(f"/checkpoints/{segment(id_of(checkpoint))}/scores"), Score)

    def iter_benchmarks(
        self, project: str, *, only: str | None = None, limit: int | None = None
    ) -> Iterator[Benchmark]:
        """The project's benchmark table by name. `only`: 'occurring' in results, or 'unmapped', with proposals."""
        path = f"/projects/{segment(project)}/benchmarks"
        return pages(lambda cursor: self._get(BenchmarkPage, path, only=only, cursor=cursor), limit)

    def set_benchmark(self, project: str, name: str, **said: Any) -> Benchmark:
        """Changes what the project says of a benchmark: capability, direction, scale, chance, sample_count,
        preferred_metrics, same_as, aliases, note. None takes back what was said. It counts from the next answer on.
        """
        path = f"/projects/{segment(project)}/benchmarks/{segment(name)}"
        return build(Benchmark, self._send("PATCH", path, said, idempotent=True))

    def record_series(self, run: RunLike, series: Sequence[Mapping[str, Any]]) -> int:
        """Adds stretches of curves, `[{attempt, name, steps, values}]`; answers the number of points.

        A stretch that is there already adds nothing.
        """
        path = f"/runs/{segment(id_of(run))}/series"
        return build(SeriesReport, self._send("POST", path, list(series), idempotent=True)).points

    def read_series(self, run: RunLike, *names: str) -> tuple[Curve, ...]:
        """The curves of the run by attempt: those named, or all."""
        path = f"/runs/{segment(id_of(run))}/series"
        return answer_items(self._fetch(path, name=names or None), Curve)

    def import_results(
        self,
        files: Sequence[File],
        *,
        checkpoint: CheckpointLike | None = None,
        project: str | None = None,
        run: str | None = None,
        step: int | None = None,
        model: str | None = None,
        format: str = "auto",
    ) -> ImportReport:
        """Sends result files (paths, or pairs of a name and the bytes) for one checkpoint, or for a run's.

        Name the checkpoint, or `project`, `run` (names) and `step`, which are made where absent. Without a step each
        file says its own, and a file of several steps goes to the checkpoint of each. `model` picks one of the models
        of a file that holds several.
        """
        target = None if checkpoint is None else id_of(checkpoint)
        named = given(checkpoint_id=target, project=project, run=run, step=step, model=model, format=format)
        parts: list[tuple[str, Any]] = [(key, str(value)) for key, value in named.items()]
        parts += [("file", _file_part(file)) for file in files]
        body, content_type = _multipart(parts)
        call = Call("POST", f"{API}/imports", body, content_type, idempotent=True)
        return build(ImportReport, self._transport.send(call))


def _file_part(file: File) -> tuple[str, bytes, str]:
    name, content = file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes())
    return name, content, "application/octet-stream"


def _multipart(parts: Sequence[tuple[str, Any]]) -> tuple[bytes, str]:
    from urllib3.filepost import encode_multipart_formdata

    return encode_multipart_formdata(parts)
