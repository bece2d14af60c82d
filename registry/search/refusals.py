"""Words that ask for what conditions joined by 'and' cannot say, each with what can be asked instead."""

from typing import Final

_CHOICE: Final = (
    "or | either | neither | nor | one of | any of | some of | either of | none of | any one of | at least one | "
    "at most one | two of | not all | not both | not every | not any | || | 或 | 或者 | 要么 | 还是 | 二选一 | "
    "至少一个 | 至少一项 | 至少一门 | 任一 | 任意一个 | 任何一个 | 任意一项 | 任选 | 其中一个 | 其中之一 | 之一 | "
    "不都 | 不全 | 并不都 | 不全都 | 不同时"
)
_COMPARISON: Final = (
    "!= | as strong | as good | as weak | as bad | as poor | as high | as low | than | versus | vs | compared | "
    "less | least | more | most | fewer | second | third | 比 | 相比 | 不如 | 优于 | 胜过 | 超过 | 高于 | 低于 | "
    "强于 | 弱于 | 好于 | 差于 | 第二 | 第三"
)
_EXCLUSION: Final = (
    "unless | except | besides | unlike | excluding | exclude | excludes | excluded | apart from | aside from | "
    "other than | rather than | instead | instead of | all but | anything but | everything but | nothing but | "
    "none but | else | other | others | rest | remaining | everything | nothing | everywhere | 除 | 除了 | 除开 | "
    "除去 | 以外 | 之外 | 除外 | 除非 | 排除 | 而非 | 而不是 | 其他 | 其它 | 其余 | 别的 | 其他的 | 其它的 | 其余的 | "
    "另外的 | 全面 | 样样"
)
_OPTION: Final = (
    "if | maybe | perhaps | possibly | optional | optionally | ideally | preferably | if possible | 如果 | 也许 | "
    "可能 | 或许 | 未必 | 不一定 | 不见得 | 尽量"
)
_CHANGE: Final = (
    "got | gets | getting | became | become | becomes | improved | improves | improving | dropped | drops | dropping | "
    "regressed | regresses | declined | declines | went | could be better | could be stronger | should be better | "
    "since last | since the last | 变 | 变差 | 变好 | 变强 | 变弱 | 变得 | 退步 | 进步"
)
_UNEVALUATED: Final = "missing | unevaluated | unscored | never evaluated | not evaluated | 未评测 | 没评测 | 缺失"
_INDIFFERENCE: Final = (
    "don't need | do not need | doesn't need | no need | needn't | need not | doesn't matter | does not matter | "
    "don't care | do not care | no matter | regardless of | 不需要 | 无需 | 不必 | 无所谓 | 不限 | 没关系 | "
    "不重要 | 不管 | 可以差 | 可以弱 | 可以低 | 可以不好 | 可以不强 | 可以很差 | 可以差一点 | 可以差点 | "
    "可以弱一点 | 可以弱点 | "
    "差点也行 | 差一点也行 | 弱点也行 | 弱一点也行 | "
    + " | ".join(
        f"{may} be {weak}"
        for may in ("can", "may", "could", "might")
        for weak in ("weak", "weaker", "bad", "poor", "poorer", "worse", "low", "lower", "terrible")
    )
)
_ADVICE: Final = (
    (
        _CHOICE,
        "asks for a choice, and conditions are joined by 'and' only: ask in queries of their own, or in the filter "
        "language",
    ),
    (
        _COMPARISON,
        "asks for a comparison with no number that could be read: say which should be strong and which weak, or "
        "write 'mmlu > 60%'",
    ),
    (
        _EXCLUSION,
        "leaves something out, or speaks of all the rest: name what should be strong and what weak, as in 'strong "
        "math but weak code'",
    ),
    (
        _CHANGE,
        "speaks of a change over time, and a search of what each checkpoint is: ask a comparison or a rollback of its "
        "run",
    ),
    (_UNEVALUATED, "asks what was evaluated: the filter language does, with 'scores.gsm8k is null' and 'scored'"),
    (_OPTION, "makes a condition optional, and each one counts: leave it out, or say it without that word"),
    (_INDIFFERENCE, "says that something does not matter: leave it out"),
)
UNSUPPORTED: Final = {word.strip(): advice for words, advice in _ADVICE for word in words.split(" | ")} | {
    "|": _ADVICE[0][1],
}
ONLY_ADVICE: Final = (
    "says that nothing else is: name what should be weak as well, as in 'strong math but weak code', or leave the "
    "word out"
)


def advice(word: str) -> str:
    """What is said of such a word. One that is not listed is '-', as in 'strong -math'."""
    return UNSUPPORTED.get(word, _ADVICE[2][1])
