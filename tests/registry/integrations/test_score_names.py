"""Which metrics of a tracker are benchmark scores."""

import pytest

from registry.integrations.score_names import ScoreName, score_name


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("gsm8k", ScoreName("gsm8k")),
        ("eval/gsm8k", ScoreName("gsm8k")),
        ("gsm8k/exact_match,strict-match", ScoreName("gsm8k", "exact_match", "strict-match")),
        ("lm_eval/arc_easy/acc,none", ScoreName("arc_easy", "acc", "")),
        ("gsm8k.exact_match.flexible-extract", ScoreName("gsm8k", "exact_match", "flexible-extract")),
        ("test/piqa/acc_norm", ScoreName("piqa", "acc_norm")),
        *((key, None) for key in ("loss", "eval_loss", "eval/loss", "train/grad_norm", "epoch", "my_task/acc", "")),
        *((key, None) for key in ("arc_easy/acc_stderr,none", "eval/gsm8k_runtime", "gsm8k/stderr")),
    ],
)
def test_a_name_that_the_benchmark_table_knows_is_a_score(key: str, name: ScoreName | None) -> None:
    assert score_name(key) == name
