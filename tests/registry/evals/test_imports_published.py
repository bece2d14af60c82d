"""Every published result file at hand goes through an import on both databases, with every score that was read."""

from pathlib import Path

import pytest
from cairn.formats import Refused
from cairn.formats.evals import read_eval_folder, read_evals
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.imports import NothingImported, Target, Upload, import_results
from registry.models import Score

PUBLISHED = Path(__file__).parents[4] / "shared" / "data"
FOLDERS = ("evals", "pythia/raw", "trainer_state", "dclm/evals")
pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published result files are not on this machine")


def expected(files: list[Path]) -> int:
    """How many scores the readers find, whoever evaluated what."""
    count = 0
    for path in files:
        try:
            count += len(read_evals(path.read_bytes(), name=path.name).scores)
        except Refused:
            continue
    for run in {path.parent for path in files if path.name == "run_spec.json"}:
        count += len(read_eval_folder({path.name: path.read_bytes() for path in run.iterdir()}).scores)
    return count


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_published_result_can_be_stored(session: Session, folder: str) -> None:
    files = sorted(path for path in (PUBLISHED / folder).rglob("*") if path.is_file())
    imported = recorded = 0
    refused = []
    for number, path in enumerate(files):
        # Files of one run of HELM come together; every other file is a checkpoint of its own run.
        group = sorted(path.parent.iterdir()) if path.name == "run_spec.json" else [path]
        if path.name in ("stats.json", "scenario.json"):
            continue
        step = None if folder == "trainer_state" else 1
        try:
            reports = import_results(
                session,
                [Upload(each.relative_to(PUBLISHED).as_posix(), each.read_bytes()) for each in group],
                Target(project="p", run=f"{folder} {number}", step=step),
            )
        except NothingImported:
            refused.append(path.name)
            continue
        imported += sum(report.imported for report in reports)
        recorded += sum(report.recorded for report in reports)
    assert imported == expected(files)
    assert recorded == session.scalar(select(func.count()).select_from(Score))
    assert len(refused) == {"evals": 0, "pythia/raw": 1, "trainer_state": 6, "dclm/evals": 0}[folder]
