"""The benchmark table that ships with the service: what a benchmark measures and how its figures read.

`benchmarks.csv` beside this file has one row per benchmark and set of metrics. A name stands on two rows
where its metrics mean different things: `lambada_openai` accuracy is reading (higher is better), its
perplexity is the health of the language model (lower is better). Chance is in the benchmark's own scale.
"""

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from registry.types import Direction

TABLE = Path(__file__).with_name("benchmarks.csv")

# Metrics that say by their name that less is better, whatever benchmark they stand under; all are
# compared as logarithms or as they are, never against a chance level.
LOG_METRICS = frozenset({"perplexity", "ppl", "word_perplexity", "byte_perplexity"})
LOWER_METRICS = LOG_METRICS | {
    *("bits_per_byte", "bpb", "loss", "eval_loss", "nll", "brier_score", "mse", "mae", "rmse"),
    *("wer", "cer", "ter", "likelihood_difference", "likelihood_diff", "asr", "over_refusal"),
}


# OpenCompass counts from 0 to 100, whatever it measures as a share, and names how it asked: its modes, which are the
# filters of its results. So the scale of such a figure is known from what it is, never from how large it is.
PERCENT_FILTERS = frozenset({"gen", "ppl", "clp", "ll", "mixed"})


@dataclass(frozen=True, slots=True)
class Capability:
    """A skill summarised from benchmarks; `lm` is the health of the language model, not a skill."""

    name: str
    title: str
    title_zh: str
    synonyms: tuple[str, ...]  # English and Chinese, lower case; the search box reads them


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A versioned eval task. `chance` is the score of guessing, None where guessing has no meaning.

    `scale` is fraction (0 to 1), percent (0 to 100), ten (1 to 10), raw or log. `family` names the benchmarks
    that ask the same questions in another way: one of them enters a composite. `part_of` names the benchmark
    whose subtask this is.
    """

    name: str
    capability: str | None
    metrics: tuple[tuple[str, str], ...]
    chance: float | None
    scale: str
    direction: Direction
    sample_count: int | None
    family: str
    aliases: tuple[str, ...] = ()
    note: str = ""
    part_of: str | None = None


CAPABILITIES: tuple[Capability, ...] = (
    Capability("math", "Math", "数学", ("math", "maths", "mathematics", "arithmetic", "数学", "算术", "计算")),
    Capability("code", "Code", "代码", ("code", "coding", "programming", "代码", "编程", "编码", "写代码", "程序")),
    Capability(
        "knowledge",
        "Knowledge",
        "知识",
        ("knowledge", "world knowledge", "facts", "知识", "常识问答", "百科"),
    ),
    Capability(
        "reasoning",
        "Reasoning",
        "推理",
        ("reasoning", "logic", "commonsense", "common sense", "推理", "逻辑", "逻辑推理", "常识", "常识推理"),
    ),
    Capability(
        "reading",
        "Reading",
        "阅读",
        ("reading", "reading comprehension", "comprehension", "阅读", "阅读理解", "理解"),
    ),
    Capability(
        "instruction",
        "Instruction following",
        "指令遵循",
        ("instruction", "instructions", "instruction following", "指令", "指令遵循", "指令跟随", "遵循指令"),
    ),
    Capability(
        "chat",
        "Chat",
        "对话",
        ("chat", "chatting", "dialogue", "dialog", "conversation", "conversational", "对话", "聊天"),
    ),
    Capability("safety", "Safety", "安全", ("safety", "harmlessness", "truthfulness", "安全", "安全性", "无害")),
    Capability(
        "multilingual",
        "Multilingual",
        "多语言",
        ("multilingual", "cross-lingual", "多语言", "多语种", "多语"),
    ),
    Capability("chinese", "Chinese", "中文", ("chinese", "mandarin", "中文", "汉语")),
    Capability(
        "longcontext",
        "Long context",
        "长上下文",
        ("longcontext", "long context", "long-context", "长上下文", "长文本", "长文"),
    ),
    Capability("agent", "Agent", "智能体", ("agent", "agents", "agentic", "tool use", "智能体", "工具调用", "代理")),
    Capability("lm", "Language modelling", "语言建模", ("lm", "language modelling", "language modeling", "语言建模")),
)

_HARNESS = re.compile(r"^[a-z_ ]+\|(.+?)\|\d+(?:\|\d+)?$")  # lighteval: suite|task|shots
_VERSION = re.compile(r"(?:-\d+(?:\.\d+)+)+$")  # a Japanese fork of lm-eval: task-1.1-0.2
_SEPARATORS = re.compile(r"[\s_\-:.]+")


@lru_cache(10_000)  # a filter over all projects asks it of every benchmark in use
def key_of(name: str) -> str:
    """The form under which names are compared: case, width and separators do not matter, `+` does."""
    folded = unicodedata.normalize("NFKC", name).strip().casefold()
    match = _HARNESS.match(folded)
    return _SEPARATORS.sub("", _VERSION.sub("", match.group(1) if match else folded))


class Catalogue:
    """The table, looked up by name or alias. Rows with the same name differ by metrics; the first leads."""

    def __init__(self, rows: Iterable[Benchmark]) -> None:
        self.benchmarks = tuple(rows)
        self.capabilities = CAPABILITIES
        self._rows: dict[str, list[Benchmark]] = {}
        self._order: dict[str, int] = {}
        for row in self.benchmarks:
            self._rows.setdefault(key_of(row.name), []).append(row)
            self._order.setdefault(row.name, len(self._order))
        named = [(alias, key_of(row.name)) for row in self.benchmarks for alias in row.aliases]
        self._alias = {key_of(alias): name for alias, name in named if not alias.endswith("*")}
        prefixes = [(key_of(alias.rstrip("*")), name) for alias, name in named if alias.endswith("*")]
        self._prefixes = sorted(prefixes, key=lambda pair: -len(pair[0]))  # the longest is the most exact

    def rows_named(self, name: str) -> tuple[Benchmark, ...]:
        """The rows of this name or alias, the leading one first."""
        return tuple(self._named(name))

    def _named(self, name: str) -> list[Benchmark]:
        key = key_of(name)
        return self._rows.get(key) or self._rows.get(self._alias.get(key, "")) or self._part(name, key)

    def _part(self, name: str, key: str) -> list[Benchmark]:
        """A subtask that the table does not list, known by the start of its name (`cmmlu_*`)."""
        for prefix, whole in self._prefixes:
            if key.startswith(prefix):
                row = self._rows[whole][0]
                part = replace(row, name=name, aliases=(), sample_count=None, note="", part_of=row.name)
                return [part]
        return []

    def get(self, name: str) -> Benchmark | None:
        """The benchmark of this name or alias; None where the table does not know it."""
        rows = self._named(name)
        return rows[0] if rows else None

    def for_metric(self, name: str, metric: str, filter: str = "") -> Benchmark:
        """How figures of this benchmark and metric read: the row that lists the metric, else the leading row.

        Never fails: what the table does not know is a benchmark of no capability, with its direction taken
        from the metric's name. A perplexity under an accuracy benchmark never inherits `higher` from it. Under a mode
        of OpenCompass, a share is counted from 0 to 100.
        """
        return as_counted(self.row_for(name, metric, filter), filter)

    def row_for(self, name: str, metric: str, filter: str = "") -> Benchmark:
        """`for_metric` in the scale of the table, whatever the filter says of how the figures were counted."""
        rows = self._named(name)
        for row in rows:
            if (metric, filter) in row.metrics or any(metric == listed for listed, _ in row.metrics):
                return row
        lower = metric in LOWER_METRICS
        if rows and not lower:
            return rows[0]
        scale = "log" if metric in LOG_METRICS else "raw"
        direction = Direction.LOWER if lower else Direction.HIGHER
        if rows:
            return replace(rows[0], capability=None, metrics=(), chance=None, scale=scale, direction=direction, note="")
        return Benchmark(name, None, (), None, scale, direction, None, name)

    def position(self, benchmark: Benchmark) -> int:
        """Where the benchmark stands in the table; of one family, the earlier one is preferred."""
        return self._order.get(benchmark.name, len(self._order))

    def parts(self, name: str) -> tuple[Benchmark, ...]:
        """The subtasks of a benchmark, such as the 57 subjects of mmlu."""
        return tuple(row for row in self.benchmarks if row.part_of == name)

    def of_capability(self, capability: str) -> tuple[Benchmark, ...]:
        """The benchmarks that a capability is summarised from, in table order."""
        return tuple(row for row in self.benchmarks if row.capability == capability)

    def capability(self, word: str) -> Capability | None:
        """The capability that this name or synonym, English or Chinese, stands for."""
        return _capability_words().get(" ".join(unicodedata.normalize("NFKC", word).casefold().split()))

    def preferred_metric(
        self, name: str, available: Mapping[tuple[str, str], int] | Iterable[tuple[str, str]]
    ) -> tuple[str, str] | None:
        """The (metric, filter) that a benchmark is read by where a query names none.

        `available` holds the pairs that occur, with their number of scores where known. The table's first
        that occurs; for an unknown benchmark, or where none of the table's occurs, the most frequent, then
        by name.
        """
        counts = dict(available) if isinstance(available, Mapping) else dict.fromkeys(available, 1)
        if not counts:
            return None
        rows = self._named(name)
        for pair in rows[0].metrics if rows else ():
            if pair in counts:
                return pair
        return min(counts, key=lambda pair: (-counts[pair], pair))


def as_counted(row: Benchmark, filter: str) -> Benchmark:
    """The row as figures under this filter are counted: under a mode of OpenCompass a share is from 0 to 100."""
    if filter not in PERCENT_FILTERS or row.scale != "fraction":
        return row
    return replace(row, scale="percent", chance=None if row.chance is None else row.chance * 100)


@cache
def _capability_words() -> dict[str, Capability]:
    return {word: each for each in CAPABILITIES for word in (each.name, *each.synonyms)}


def _metrics(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (item.rpartition(",") for item in text.split(";") if item)
    return tuple((metric, filter) for metric, _, filter in pairs)


def read_table(path: Path) -> list[Benchmark]:
    """The rows of a table in the format of `benchmarks.csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Benchmark(
                name=row["name"],
                capability=row["capability"] or None,
                metrics=_metrics(row["metrics"]),
                chance=float(row["chance"]) if row["chance"] else None,
                scale=row["scale"],
                direction=Direction(row["direction"]),
                sample_count=int(row["sample_count"]) if row["sample_count"] else None,
                family=row["family"],
                aliases=tuple(filter(None, row["aliases"].split(";"))),
                note=row["note"],
                part_of=row["part_of"] or None,
            )
            for row in csv.DictReader(file)
        ]


@cache
def catalogue() -> Catalogue:
    """The shipped table, read once, when first asked for."""
    return Catalogue(read_table(TABLE))
