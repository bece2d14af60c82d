"""Which numbers of a history are scores."""

import pytest
from cairn.wandb_import.scores import score_name

KNOWN = frozenset({"gsm8k", "mmlu", "arc_easy"})


@pytest.mark.parametrize(
    ("key", "score"),
    [
        ("gsm8k", {"benchmark": "gsm8k"}),
        ("eval/GSM8K", {"benchmark": "GSM8K"}),
        ("eval/mmlu/acc", {"benchmark": "mmlu", "metric": "acc"}),
        ("lm_eval/mmlu/acc,none", {"benchmark": "mmlu", "metric": "acc"}),
        ("gsm8k/exact_match,strict-match", {"benchmark": "gsm8k", "metric": "exact_match", "filter": "strict-match"}),
        ("gsm8k.exact_match.flexible", {"benchmark": "gsm8k", "metric": "exact_match", "filter": "flexible"}),
        ("val_arc_easy", {"benchmark": "arc_easy"}),
        *(
            (name, None)
            for name in ("loss", "eval/loss", "eval_loss", "gsm8k_stderr", "eval/mmlu/acc_stderr,none", "x/mmlu")
        ),
        *((name, None) for name in ("", "eval/", "mmlu/", "gsm8k_runtime", "eval/mmlu_samples")),
    ],
)
def test_a_score_has_a_name_that_the_table_knows(key: str, score: dict[str, str] | None) -> None:
    assert score_name(key, KNOWN) == score


def test_without_a_table_every_number_stays_a_metric() -> None:
    assert score_name("gsm8k", frozenset()) is None
