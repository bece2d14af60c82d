"""Each rule on its own line, and which cause wins where several lines speak."""

import csv
import random
from collections import Counter
from pathlib import Path
from re import _parser as sre_parse  # type: ignore[attr-defined]
from typing import Any

import pytest
from cairn.causes import Guess, guess, match_of, signal_name
from cairn.causes.progress import Rising, step_of
from cairn.causes.rules import ROOT, RULES, Rule

from registry.incidents.causes import CAUSES

SHARED = Path(__file__).parents[4] / "shared"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
TIMEOUT = "[rank5]:[E] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8172)"
RESET = "RuntimeError: [rank2] Connection reset by peer"
STEP = "iteration    {}/  115311 | consumed samples: 9841584 | lm loss: 2.463556E+00 | number of nan iterations:   0 |"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.cause}: {rule.example[:40]}")
def test_each_rule_is_shown_by_its_line(rule: Rule) -> None:
    assert match_of(rule.example) is rule
    assert guess([rule.example]) == Guess(rule.cause, (rule.example.strip(),))
    assert guess([f"[default3]:{rule.example}"]).cause == rule.cause


def test_every_cause_is_one_that_the_service_knows() -> None:
    assert {rule.cause for rule in RULES} <= set(CAUSES)


def test_every_kind_of_cause_that_is_asked_for_has_a_rule() -> None:
    wanted = (
        *("power", "gpu-off-bus", "gpu-ecc", "gpu-xid", "link-flap", "nccl-timeout", "storage-io", "stale-handle"),
        *("disk-full", "host-memory", "gpu-memory", "nan-loss", "preemption", "scheduler-limit"),
        *("python-exception", "user-interrupt", "native-crash", "host-fault", "corrupt-checkpoint"),
    )
    assert set(wanted) <= {rule.cause for rule in RULES}


def test_a_timeout_after_another_rank_s_lack_of_memory_is_the_lack_of_memory() -> None:
    assert guess([OOM, *[TIMEOUT] * 500, RESET]) == Guess("gpu-memory", (OOM,))


def test_a_root_cause_that_is_told_late_still_wins() -> None:
    late = "NVRM: Xid (PCI:0000:0f:00): 79, pid=2271, GPU has fallen off the bus."
    assert guess([TIMEOUT, RESET, late]).cause == "gpu-off-bus"


def test_of_failures_the_first_in_time_wins_over_the_flood() -> None:
    flood = [f"RuntimeError: [rank{rank}] something else broke" for rank in range(64)]
    assert guess(["KeyError: 'lr'", TIMEOUT, *flood]) == Guess("python-exception", ("KeyError: 'lr'", *flood[:4]))
    assert guess([TIMEOUT, *flood]).cause == "nccl-timeout"


def test_of_roots_the_first_in_time_wins() -> None:
    full = "OSError: [Errno 28] No space left on device"
    assert guess([full, OOM]).cause == "disk-full"
    assert guess([OOM, full]).cause == "gpu-memory"


def test_another_rank_that_went_away_is_only_the_cause_where_nothing_else_is_told() -> None:
    assert guess([RESET, "ValueError: bad batch"]).cause == "python-exception"
    assert guess([RESET]).cause == "worker-lost"


def test_what_the_job_survived_is_no_cause() -> None:
    survived = [OOM, STEP.format(10), STEP.format(11), STEP.format(12)]
    assert guess(survived).cause == "unknown"
    assert guess([*survived, TIMEOUT]).cause == "nccl-timeout"
    assert guess([OOM, STEP.format(10), TIMEOUT]).cause == "gpu-memory"


def test_unknown_stays_unknown() -> None:
    assert guess([]) == guess(["all is well", "bye"]) == Guess("unknown")
    assert guess(["all is well"], signal="SIGKILL") == Guess("unknown")


def test_a_signal_speaks_where_the_log_does_not() -> None:
    assert guess([], signal="SIGSEGV") == Guess("native-crash", ("the job ended by SIGSEGV",))
    assert guess([], signal="SIGINT").cause == "user-interrupt"
    assert guess(["KeyError: 'x'"], signal="SIGSEGV").cause == "python-exception"


def test_what_somebody_asked_for_is_no_failure_unless_something_broke_before() -> None:
    assert guess(["KeyboardInterrupt", RESET], asked="SIGINT").cause == "user-interrupt"
    assert guess([TIMEOUT], asked="SIGTERM").cause == "scheduler"
    assert guess(["CANCELLED AT 2021-10-09T20:00:21 DUE TO TIME LIMIT ***"], asked="SIGTERM").cause == "scheduler-limit"
    assert guess([OOM], asked="SIGINT").cause == "gpu-memory"


def test_a_signal_without_a_name_is_called_by_its_number() -> None:
    assert (signal_name(9), signal_name(250)) == ("SIGKILL", "SIG250")


HEALTHY = (
    STEP.format(31214),
    "number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 19.463",
    "loading checkpoint from /mnt/ckpt/step-200 ... done, no errors",
    "INFO: nan_check enabled; loss_fn=CrossEntropyLoss",
    "Using error_if_nonfinite=False",
    "{'loss': 2.31, 'grad_norm': 0.4, 'learning_rate': 3e-05, 'epoch': 0.02}",
    "fallen behind schedule by 3 s",
    "UserWarning: lr_scheduler.step() before optimizer.step()",
    "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB",
    "nvidia.com/gpu: 8; node has 2 power supplies, all ok",
    "storage I/O 3.1 GB/s, 0 errors",
)


@pytest.mark.parametrize("line", HEALTHY)
def test_a_healthy_line_says_nothing(line: str) -> None:
    assert match_of(line) is None


def test_real_lines_of_a_healthy_log_say_nothing() -> None:
    path = SHARED / "data/logs/tr11_megatron_log_lines.txt"
    if not path.exists():
        pytest.skip("the shared data is absent")
    lines = path.read_text().splitlines()
    assert guess(lines) == Guess("unknown")
    assert [step_of(line) for line in lines][:3] == [12695, 31214, 31215]


def test_the_descriptions_of_a_published_ledger_name_their_causes() -> None:
    path = SHARED / "data/faults/hector_sev1.csv"
    if not path.exists():
        pytest.skip("the shared data is absent")
    with path.open(newline="") as file:
        found = Counter(guess([row["description"]]).cause for row in csv.DictReader(file))
    assert found == {"power": 5, "link-flap": 2, "unknown": 2}


def test_a_long_line_and_any_bytes_cost_little_and_raise_nothing() -> None:
    rng = random.Random(5)
    noise = ["".join(chr(rng.randrange(32, 0x2FF)) for _ in range(300)) for _ in range(300)]
    guess([*noise, "x" * 5_000_000, "power " * 100_000, "[" * 100_000, OOM])
    assert guess(["a" * 1_000_000 + OOM]).cause == "gpu-memory"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step 500 | loss 2.31 | lr 3e-4", 500),
        ("[rank0]: step: 1,  loss: 9.1", 1),
        ('{"step": 120, "loss": 2.5}', 120),
        ("global_step=77 grad_norm=0.5", 77),
        ("step: 12/1000 loss: 3", 12),
        ("Iter 90 [ 3 s/it ]", 90),
        ("step 2,400 loss 2.1", 2400),
        (" iteration 1,002,400/ 2,000,000 | lm loss: 2.1", 1_002_400),
        ("Steps:  10%|█         | 100/1000 [00:10<01:30, 10.0it/s, lr=1e-5]", 100),
        ("Steps:  10%|█         | 100/1000 [00:10<01:30, 10.0it/s]", 100),
        ("Epoch 3:  10%|█         | 100/1000 [00:10<01:30, 10.0it/s, loss=2.31]", None),
        ("Map:  10%|█         | 100/1000 [00:10<01:30, 10.0it/s]", None),
        ("step 2: download the data", None),
        ("12%|█▏        | 120/1000 [00:10<01:14, 11.8it/s]", None),
        ("missteps 5 loss", None),
    ],
)
def test_the_step_of_a_line(line: str, step: int | None) -> None:
    assert step_of(line) == step


def test_only_what_rises_is_counted_as_progress() -> None:
    bar = "12%|█▏        | {}/1000 [00:10<01:14, 11.8it/s]"
    epoch = "{{'loss': '2.31', 'grad_norm': '0.4', 'learning_rate': '3e-05', 'epoch': '{}'}}"
    for shape, values in (
        (STEP, (10, 11)),
        (bar, (120, 121)),
        (epoch, (0.02, 0.03)),
        ("step {} loss 2", (999, "1,001")),
    ):
        rising = Rising()
        assert [rising.read(shape.format(each)) for each in (values[0], values[0], values[1], values[0])] == [
            1,
            1,
            2,
            2,
        ]
    assert Rising().read("Loading the tokenizer") == 0


def test_roots_are_told_from_failures() -> None:
    assert {rule.level for rule in RULES if rule.cause in ("gpu-memory", "disk-full", "preemption")} == {ROOT}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.cause}: {rule.example[:40]}")
def test_no_line_that_a_pattern_finds_lacks_the_words_that_let_it_be_searched(rule: Rule) -> None:
    """Each alternative of a pattern is shortened to its letters; one of the words must be among them."""
    for text in alternatives(rule.pattern.pattern):
        assert any(word in text.lower() for word in rule.words), text


def alternatives(pattern: str) -> list[str]:
    """Texts that the pattern finds, one for each of its alternatives."""
    return [text for text in spelled(list(sre_parse.parse(pattern))) if text]


def spelled(parts: list[Any]) -> list[str]:
    texts = [""]
    for kind, value in parts:
        name = str(kind)
        if name == "LITERAL":
            more = [chr(value)]
        elif name == "BRANCH":
            more = [text for branch in value[1] for text in spelled(list(branch))]
        elif name == "SUBPATTERN":
            more = spelled(list(value[3]))
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            more = [""] if value[0] == 0 else spelled(list(value[2]))
        else:
            more = [""]  # a class, a place, a look ahead
        texts = [text + each for text in texts for each in more]
    return texts
