"""Published result files of one model under two prompt templates are never taken for a fall."""

from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from registry.evals.imports import Target, Upload, import_results
from registry.provenance.compare import compare_checkpoints
from tests.factories import make_checkpoint, make_run

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "evals" / "lm_eval_v03"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the published result files are not on this machine")


def test_another_prompt_template_is_not_comparable_and_the_key_is_named(session: Session) -> None:
    run = make_run(session)
    ids = []
    for step, template in enumerate(("0.1", "0.2"), start=1):
        ids.append(make_checkpoint(session, run, step))
        (path,) = FOLDER.glob(f"stablelm-jp-3b*template-{template}.json")
        import_results(session, [Upload(path.name, path.read_bytes())], Target(ids[-1]))
    scores = compare_checkpoints(session, *ids).scores
    templated = [each for each in scores.scores if "prompt_template" in each.why]
    assert len(templated) >= 5
    assert {each.verdict for each in templated} == {"not_comparable"}
    assert any(each.why == "prompt_template differs: 0.1 for the baseline, 0.2 for the candidate" for each in templated)
    assert not scores.fell
