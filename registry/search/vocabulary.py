"""The words that a plain-language query may use, English and Chinese, as tables.

Lower case, width folded. A word of letters matches whole words only; a Chinese one matches anywhere, the longest
first, so 不错 (good) is found before 不 (not). What stands in none of these tables is reported as not understood.
"""

from typing import Final

Words = tuple[str, ...]


def _words(text: str) -> Words:
    return tuple(text.split())


def phrases(text: str) -> Words:
    return tuple(phrase.strip() for phrase in text.split("|"))


# How good, before any adverb.
STRONG: Final = _words("""
    strong stronger good better great high higher excellent excel excels excelling outstanding solid capable
    impressive superb skilled proficient adept well nice strength strengths shine shines competent robust
    talented 强 强项 更强 好 更好 高 更高 优秀 突出 擅长 精通 厉害 出色 优异 拔尖 领先 不错 强劲 强大 牛 给力 棒
    亮眼 过硬 在行 长处 拿手 见长 不俗
""")
# Superlatives move the threshold as 'very' does.
STRONGEST: Final = _words("""
    best strongest top highest greatest 最好 最强 最高 最优 最佳 最擅长 最突出 第一 顶尖 顶级 最厉害 最出色
""")
FAIRLY_STRONG: Final = _words("""
    decent 尚可 还行 还可以 还不错
""")
WEAK: Final = _words("""
    不太行 不怎么样 不怎么行 不咋地 不咋样 weak weaker bad poor poorer poorly worse low lower struggle struggles
    struggling terrible lacking lag lags lagging fail fails failing weakness weaknesses subpar lousy awful
    deficient badly inferior 弱 弱项 更弱 差 更差 低 更低 拉胯 拉垮 糟糕 糟 烂 薄弱 短板 落后 欠佳 不佳 垃圾
    suck sucks sucking 差劲 不行 欠缺 吃力 堪忧 拖后腿 弱势 不理想
""")
WEAKEST: Final = _words("""
    worst weakest poorest lowest bottom 最差 最弱 最低 最烂 最拉胯 最糟糕
    倒数第一 垫底 末位
""")
ABOVE_AVERAGE: Final = phrases(
    "above average | better than average | no worse than average | not worse than average | at least average | "
    "高于平均 | 高于平均水平 | 平均以上 | 中等以上"
)
BELOW_AVERAGE: Final = phrases("below average | worse than average | 低于平均 | 低于平均水平 | 平均以下 | 中等以下")
VERY: Final = _words("""
    very extremely really exceptionally especially particularly super highly remarkably incredibly so too 很
    非常 特别 极 极其 极度 十分 超 超级 相当 尤其 格外 异常 巨 真的 太
""")
FAIRLY: Final = _words("""
    fairly somewhat reasonably rather quite decently moderately relatively pretty slightly 较 比较 还算 还 略 稍
    稍微 有点 有些 算 较为 挺 蛮 相对
""")
NEGATION: Final = _words("""
    not no never isn't aren't doesn't don't can't cannot won't hardly barely scarcely without isnt arent doesnt dont
    hasn't haven't wasn't weren't hasnt havent wasnt werent shouldn't mustn't couldn't wouldn't didn't ain't
    shouldnt mustnt couldnt wouldnt didnt aint
    不 没 没有 没能 没那么 无 并不 并非 不是 不太 不怎么 不够 不算 未 并没有 绝不 从不 不能算 谈不上 算不上 称不上 不大
    不会 别 勿
""")
# These speak of the number and not of how good it is: the lowest perplexity is the best one.
VALUES: Final = frozenset(_words("high higher highest low lower lowest 高 更高 最高 低 更低 最低"))
# Between clauses: contrast, and what holds at the same time. A comma or an `and` (LISTING) binds closer.
BREAK: Final = _words("""
    but yet while whereas however although though despite nevertheless still albeit ; 但 但是 而 同时 可是 然而
    却 不过 虽然 尽管 虽 只是 另外
""")
LISTING: Final = _words("""
    , . : ! ? / & + ( ) [ ] ~ and also plus with 和 与 及 以及 跟 、 。 并且 而且 且 并 还有 又 也
""")
# Who is good at something is called after it: 'a good coder'.
PEOPLE: Final = {"coder": "code", "programmer": "code", "mathematician": "math", "reasoner": "reasoning"}
# The figure of a benchmark that a word after it, or before its name, speaks of.
METRIC: Final = _words("perplexity perplexities ppl 困惑度")
# 'Only strong at math' says of everything else that it is not; 'only 7B models' says no more than '7B models'.
ONLY: Final = _words("only just solely merely exclusively alone 只 只有 仅 仅仅 唯一 唯独 单单")
FILLERS: Final = _words("""
    a an the of in on at for that this these those which who what where whose when how is are was were be been
    being has have had having do does did can could should would will may might must it its it's they them their
    there here i me my we our us you your please show find get give list want wants need needs looking look
    search searching see fetch return pick choose select any some all every each one ones both to from
    by about as regards regarding saved stored checkpoint checkpoints ckpt ckpts model models run runs task
    tasks benchmark benchmarks perform performs performed performing performance score scores scoring result
    results ability abilities skill skills capability capabilities level levels area areas side terms respect
    department thing things kind type sort something anything i'm we're i'd that's what's who's let lets hello
    hi thanks thank among exactly 副本 处理 训练 既 处于 阶段 保存 时间
    找 找到 找出 找个 查 查找 查一下 查询 搜 搜索 搜一下 帮 帮我 帮忙 请
    请问 给 给我 我 我们 想
    想要 想找 要 需要 有 有没有 哪个 哪些 哪 哪一个 什么 一个 一下 个 些 一些 几个 所有 全部 的 地 得 了 着 过
    是 在 于 上 里 中 方面 能力 水平 表现 成绩 分数 得分 任务 模型 检查点 存档 存档点 版本 权重 那 这 那个 这个
    那种 这种 都 就 呢 吗 吧 啊 呀 来 看 看看 看一下 列出 显示 推荐 推荐一个 选 选出 挑 挑一个 可以 能 应该 对
    对于 它 它们 做 做得 题 题目 类 性能 效果 指标 时候 时 会 结果 评测 评估 测试 一点 以 某个 的话 可 不仅
    不但 不只 不光 无论 而言 最好是 最好能 且是 起来 说 来说 方向 科目 内 以内 之内 = 级别 类别 只要 只想 只需 只看 只找
""")
# Words that hold a shorter word of another meaning: reinforcement learning is not 'strong'. Never understood.
OPAQUE: Final = _words("""
    强化学习 强化 增强 勉强 高效 高级 低级 低精度 低秩 提高 降低 好像 优化器 优化 差异 差别 差不多 误差 偏差
    方差 太阳 对齐 上下文 中间 中等 一般 最近 最后 无监督 不同 强迫 识别 判别 鉴别 辨别 分别 个别 区别
    完成 达成 平均 马马虎虎 是不是 会不会 能不能 够不够 倒数 英文 英语
""")

# Several words that are one: the role is the name of a table above, in lower case.
PHRASES: Final = {
    "as well as": "listing",
    "at the same time": "break",
    "even though": "break",
    "in spite of": "break",
    "best first": "strongest",
    "strongest first": "strongest",
    "weakest first": "weakest",
    "falls behind": "weak",
    "falls short": "weak",
    "kind of": "fairly",
    "sort of": "fairly",
    "at all": "fillers",
    "that are": "fillers",
    "far from": "negation",
    "还是很": "very",
    "还是非常": "very",
    "还是比较": "fairly",
    "not only": "not_only",
    "not just": "not_only",
    "but also": "listing",
    "just show": "fillers",
    "just give": "fillers",
    "just find": "fillers",
    "just want": "fillers",
    "just need": "fillers",
    "only want": "fillers",
    "only need": "fillers",
    **{
        f"{some} of {those}{kind}": "fillers"
        for some in ("one", "any", "some")
        for those in ("the ", "these ", "those ", "our ", "my ")
        for kind in ("checkpoints", "ckpts", "models", "runs")
    },
}

# What comes first of those that meet everything.
NEWEST_WORDS: Final = phrases(
    "newest first | latest first | most recent first | the last checkpoint | last checkpoint | the last ckpt | "
    "last ckpt | newest | latest | most recent | the newest | the latest | the most recent | most recently saved | "
    "最新的 | 最新 | "
    "最近的一个 | 最近保存的 | 最近一个 | 最后一个"
)
OLDEST_WORDS: Final = phrases(
    "oldest first | earliest first | the first checkpoint | first checkpoint | the first ckpt | first ckpt | "
    "the first one | oldest | earliest | the oldest | the earliest | 最早的 | 最早 | 最老的 | 最旧的 | 第一个 | 首个"
)

# Kinds of runs, each with the other words for it: a team's own word among them is the one that is asked for.
RUN_KINDS: Final = tuple(
    phrases(said)
    for said in (
        "sft | supervised fine-tuned | supervised fine-tuning | supervised finetuning | 监督微调 | 指令微调",
        "dpo | direct preference optimization | direct preference optimisation",
        "rlhf | 人类反馈强化学习",
        "ppo",
        "grpo",
        "pretrain | pretraining | pretrained | pre-train | pre-training | pre-trained | 预训练",
        "finetune | finetuning | finetuned | fine-tune | fine-tuning | fine-tuned | 微调",
        "midtrain | midtraining | mid-training | mid-train | 中期训练",
        "continued pretraining | continual pretraining | cpt | 继续预训练 | 增量预训练",
        "distill | distilled | distillation | 蒸馏",
    )
)

# Benchmarks whose names are everyday words: read only where a number is compared with them.
EVERYDAY_BENCHMARKS: Final = frozenset({"drop", "race", "math", "copa", "squad", "nq", "minerva", "c4"})

EXAMPLES: Final = (
    "strong math but weak chat",
    "very good at code, fairly good at reasoning",
    "mmlu >= 60% before step 50000",
    "7B models with gsm8k above 0.5",
    "找一个数学强但对话弱的 checkpoint",
    "mmlu 不低于 60% 第5万步之前",
)
