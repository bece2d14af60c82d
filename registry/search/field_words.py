"""The words of a query that speak of what is recorded of a checkpoint beside its scores, as tables."""

from collections.abc import Iterator
from typing import Final

from registry.search.vocabulary import phrases

# Words that are conditions on fields. Each is (field, relation, value), all of them together.
FieldTerms = tuple[tuple[str, str, str | bool], ...]
_RESUME: FieldTerms = tuple((f"pieces.{piece}", "=", "present") for piece in ("weights", "optimizer", "data_position"))
_FIELD_PHRASES: tuple[tuple[str, FieldTerms], ...] = (
    (
        "resumable | resume-able | can be resumed | can resume | can i resume | i can resume | can we resume | "
        "we can resume | can resume from | can i resume from | i can resume from | can we resume from | "
        "we can resume from | can continue training | possible to resume",
        _RESUME,
    ),
    (
        "能接着训 | 可以接着训 | 能接着训练 | 可以接着训练 | 能断点续训 | 可断点续训 | 支持断点续训 | 能续训 | "
        "可续训 | 可以续训 | 能继续训练 | 可继续训练 | 可以继续训练 | 可恢复训练 | 能恢复训练 | 可以恢复训练",
        _RESUME,
    ),
    ("exactly resumable | bit-exact resume | 精确续训 | 精确恢复", (("resumability", "=", "exact"),)),
    ("weights only | weights-only | 只有权重 | 仅权重 | 仅有权重", (("resumability", "=", "weights-only"),)),
    ("restorable | can be restored | 可恢复 | 能恢复 | 可以恢复", (("replicas.state", "=", "present"),)),
    (
        "on object storage | in object storage | on s3 | in s3 | s3 | 在 s3 上 | 在s3上 | 存在 s3 | 对象存储",
        (("replicas.tier", "=", "object"),),
    ),
    ("object storage | object store | on object store | in object store", (("replicas.tier", "=", "object"),)),
    ("on local disk | with a local copy | local copy | on local storage", (("replicas.tier", "=", "local"),)),
    ("本地副本 | 本地磁盘 | 本地有副本", (("replicas.tier", "=", "local"),)),
    ("on shared storage | on nfs | 共享存储 | 共享盘", (("replicas.tier", "=", "shared"),)),
)


def _not_decayed() -> Iterator[str]:
    """'The lr has not decayed yet', 学习率还没衰减: before the decay, in words of their own."""
    for done in ("decayed", "annealed", "cooled down"):
        for denied in ("not", "not yet", "hasn't", "has not", "hasn't yet", "has not yet", "haven't", "have not"):
            for of in ("", "lr ", "learning rate "):
                yield from (f"{of}{denied} {done}{yet}" for yet in ("", " yet"))
    for verb in ("decays", "decayed", "anneals", "annealing starts", "decay starts", "decay begins"):
        yield from (f"before {of}{verb}" for of in ("", "the ", "lr ", "the lr ", "the learning rate "))
    for denied in ("还没", "还没有", "尚未", "还未", "未", "没", "没有"):
        for verb in ("衰减", "退火", "开始衰减", "开始退火", "进入退火", "进入衰减", "降学习率"):
            yield from (f"{of}{denied}{verb}" for of in ("", "学习率", "学习率 "))


_PHASES: tuple[tuple[str, FieldTerms], ...] = (
    (
        "before the decay | before decay | before the lr decay | before the learning rate decay | before annealing | "
        "before the annealing | before the cooldown | before cooldown | before the cool-down | pre-decay | "
        "pre-anneal | "
        "退火前 | 退火之前 | 退火以前 | 衰减前 | 衰减之前 | 学习率衰减前 | 学习率衰减之前 | 降学习率之前",
        (("lr_phase", "!=", "decay"),),
    ),
    (" | ".join(_not_decayed()), (("lr_phase", "!=", "decay"),)),
    (
        "in the decay | during the decay | during decay | in the decay phase | decay phase | while annealing | "
        "during annealing | in the annealing phase | annealing phase | annealed | decayed | lr decayed | "
        "lr has decayed | the lr has decayed | learning rate has decayed | the learning rate has decayed | "
        "退火中 | 退火阶段 | 退火期 | 衰减阶段 | "
        "衰减期 | 学习率衰减阶段 | 退火时",
        (("lr_phase", "=", "decay"),),
    ),
    (
        "in the stable phase | stable phase | in the constant phase | constant phase | at the full learning rate | "
        "at the peak learning rate | at peak lr | at full lr | peak lr | full lr | peak learning rate | "
        "稳定阶段 | 稳定期 | 恒定学习率 | 平稳阶段 | 学习率稳定阶段",
        (("lr_phase", "=", "stable"),),
    ),
    (
        "during warmup | during warm-up | in warmup | in warm-up | in the warmup | in the warm-up | warmup phase | "
        "warm-up phase | in the warmup phase | in the warm-up phase | 预热阶段 | 预热期 | 预热中 | 热身阶段",
        (("lr_phase", "=", "warm-up"),),
    ),
    (
        "after warmup | after warm-up | after the warmup | after the warm-up | 预热后 | 预热之后",
        (("lr_phase", "!=", "warm-up"),),
    ),
    ("archive checkpoints | archive checkpoint | 归档存档 | 归档检查点 | 归档 checkpoint", (("kind", "=", "archive"),)),
    ("light checkpoints | light checkpoint | 轻量存档 | 轻量检查点 | 轻量 checkpoint", (("kind", "=", "light"),)),
    ("milestones | milestone | milestone checkpoints | 里程碑", (("milestone", "=", True),)),
)
_PIECES: Final = (
    ("optimizer", "optimizer | optimizer state | optimiser | optimiser state", "优化器 | 优化器状态"),
    ("weights", "weights | model weights", "权重"),
    ("data_position", "data position | data cursor | loader state", "数据位置 | 数据游标"),
    ("random_state", "random state | rng state", "随机状态"),
)


def _piece_words() -> Iterator[tuple[str, FieldTerms]]:
    """'with optimizer state', 'missing weights', 缺优化器: which piece is there, and which is not."""
    for piece, english, chinese in _PIECES:
        for presence, before, zh in (
            ("present", ("with", "has", "have", "having"), ("带", "带有", "有", "含", "包含")),
            (
                "absent",
                ("without", "no", "missing", "lacks", "lacking", "lack"),
                ("没有", "不带", "不含", "无", "缺", "缺少", "缺失", "没"),
            ),
        ):
            terms: FieldTerms = ((f"pieces.{piece}", "=", presence),)
            the = ("", "the ") if presence == "present" else ("", "the ", "any ")
            for word in phrases(english):
                yield from ((f"{verb} {article}{word}", terms) for verb in before for article in the)
            for word in phrases(chinese):
                yield from ((f"{verb}{word}", terms) for verb in zh)
    weights, optimizer = (f"pieces.{piece}" for piece in ("weights", "optimizer"))
    both: FieldTerms = ((weights, "=", "present"), (optimizer, "=", "present"))
    for joint in "和与跟及":
        for all_of in ("都在", "都有", "齐全", "都还在", "都齐全"):
            yield f"权重{joint}优化器{all_of}", both
            yield f"优化器{joint}权重{all_of}", both
    for piece, _, chinese in _PIECES:
        for word in phrases(chinese):
            yield from (
                (f"{word}{there}", ((f"pieces.{piece}", "=", "present"),)) for there in ("还在", "都在", "在的")
            )
            yield from ((f"{word}{gone}", ((f"pieces.{piece}", "=", "absent"),)) for gone in ("不在", "没了", "丢了"))
    yield "optimizer state", (("pieces.optimizer", "=", "present"),)


FIELD_WORDS: Final = {
    **{word: terms for said, terms in (*_FIELD_PHRASES, *_PHASES) for word in phrases(said)},
    **dict(_piece_words()),
}

# What a number may be compared with besides benchmarks.
_FIELD_NAMES: Final = (
    ("step | steps | 步 | 步数 | 训练步数 | 训练步", "step"),
    ("loss | training loss | train loss | 损失 | 训练损失 | 损失值", "loss"),
    ("lr | learning rate | 学习率", "lr"),
    ("epoch | epochs | 轮数 | 轮次", "epoch"),
    ("token | tokens | tokens seen | tokens_seen | 词元 | 词元数 | token 数 | token数", "tokens_seen"),
    ("parameters | params | parameter count | model size | size", "run.parameter_count"),
    ("参数 | 参数量 | 参数规模 | 规模 | 模型大小", "run.parameter_count"),
)
FIELD_NAMES: Final = {word: field for said, field in _FIELD_NAMES for word in phrases(said)}
