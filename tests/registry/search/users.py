"""Questions as users put them, each with the meaning that its words have.

Written before the parser was asked, by somebody who had seen its tables, so they count with neither the strangers' nor
the others. Read at the same time as those of `queries.py`, and with the same names known.
"""

from tests.registry.search.queries import RESUMABLE

THREE_DAYS = "saved_at>=2026-11-15T10:00:00Z"
ONE_B = "run.parameter_count>=850000000 run.parameter_count<=1150000000"

# question, conditions, words not understood, what comes first
USERS = (
    # the lowest loss
    ("lowest loss", "", "", "lowest_loss"),
    ("checkpoint with lowest loss", "", "", "lowest_loss"),
    ("checkpoint with the lowest training loss", "", "", "lowest_loss"),
    ("strong math, lowest loss first", "math>=0.8", "", "lowest_loss"),
    ("lowest loss in run llama-7b-v2 before step 5000", "run.name=llama-7b-v2 step<5000", "", "lowest_loss"),
    ("最低的loss", "", "", "lowest_loss"),
    ("loss 最低的 checkpoint", "", "", "lowest_loss"),
    ("训练损失最低,代码强", "code>=0.8", "", "lowest_loss"),
    ("数学最好 loss 最低的", "math>=0.95", "", "lowest_loss"),
    ("损失最小的 1B 模型", ONE_B, "", "lowest_loss"),
    # a loss and a number
    ("loss below 2", "loss<2", "", "match"),
    ("loss under 2.5 and mmlu over 25%", "loss<2.5 mmlu>0.25", "", "match"),
    ("loss better than 2", "loss<2", "", "match"),
    ("loss worse than 3", "loss>3", "", "match"),
    ("损失小于2的", "loss<2", "", "match"),
    ("loss低于2.5,数学好的", "loss<2.5 math>=0.8", "", "match"),
    # comparisons
    ("anything that beats 70% on arc_easy?", "arc_easy>0.7", "", "match"),
    ("wikitext beats 10", "wikitext<10.0", "", "match"),
    ("mmlu hits 30%", "mmlu>=0.3", "", "match"),
    ("models scoring over 0.65 on lambada_openai", "lambada_openai>0.65", "", "match"),
    ("where did we get at least 30% on arc challenge", "arc_challenge>=0.3", "", "match"),
    ("perplexity below 10 on lambada", "lambada_openai.perplexity<10.0", "", "match"),
    ("ppl under 12 on wikitext", "wikitext.word_perplexity<12.0", "", "match"),
    ("gsm8k 过 50% 的有哪些", "gsm8k>0.5", "", "match"),
    ("gsm8k 达到 50%", "gsm8k>=0.5", "", "match"),
    ("arc_easy 准确率七成以上", "arc_easy>=0.7", "", "match"),
    ("wikitext 困惑度低于 15", "wikitext.word_perplexity<15.0", "", "match"),
    # how good
    ("which checkpoint has the best mmlu?", "mmlu~strong0.95", "", "match"),
    ("our best coder", "code>=0.95", "", "match"),
    ("doesn't suck at math", "math>=0.5", "", "match"),
    ("really bad at instruction following", "instruction<=0.05", "", "match"),
    ("weak at math despite being strong at code", "math<=0.2 code>=0.8", "", "match"),
    ("strong at code, not so strong at math", "code>=0.8 math<=0.5", "", "match"),
    ("mmlu 最高的是哪个", "mmlu~high0.95", "", "match"),
    ("数学不能太差", "math>=0.5", "", "match"),
    ("指令遵循差但推理优秀", "instruction<=0.2 reasoning>=0.8", "", "match"),
    ("长上下文强的", "longcontext>=0.8", "", "match"),
    ("中文最好的 1B 模型", f"chinese>=0.95 {ONE_B}", "", "match"),
    # when, where, how far
    ("checkpoints from the last 3 days with good reasoning", f"{THREE_DAYS} reasoning>=0.8", "", "match"),
    ("any ckpt between 50k and 80k steps that's good at reading", "step>=50000 step<=80000 reading>=0.8", "", "match"),
    ("before 20k steps, strong at knowledge", "step<20000 knowledge>=0.8", "", "match"),
    (
        "trained on more than 100B tokens, solid reasoning",
        "tokens_seen>100000000000 reasoning>=0.8",
        "trained",
        "match",
    ),
    (
        "strong in math, poor in safety, at most 3B params",
        "math>=0.8 safety<=0.2 run.parameter_count<=3000000000",
        "",
        "match",
    ),
    ("昨天存的数学强的", "saved_at>=2026-11-17T00:00:00Z saved_at<2026-11-18T00:00:00Z math>=0.8", "", "match"),
    ("最近三天里推理最强的", f"{THREE_DAYS} reasoning>=0.95", "", "match"),
    ("10万步以后数学还是很差的", "step>100000 math<=0.05", "", "match"),
    ("五万步到八万步之间,阅读理解好的", "step>=50000 step<=80000 reading>=0.8", "", "match"),
    ("训练 token 超过 1000 亿的,知识强", "tokens_seen>100000000000 knowledge>=0.8", "", "match"),
    ("参数量不超过 3B,代码强", "run.parameter_count<=3000000000 code>=0.8", "", "match"),
    ("第143000步", "step=143000", "", "match"),
    # pieces and copies
    (
        "is there a checkpoint good at code whose optimizer state is still there?",
        "code>=0.8 pieces.optimizer=present",
        "",
        "match",
    ),
    ("想要一个能接着训的,代码强的", f"{RESUMABLE} code>=0.8", "", "match"),
    ("权重和优化器都在的,数学强", "pieces.weights=present pieces.optimizer=present math>=0.8", "", "match"),
    ("权重没了的", "pieces.weights=absent", "", "match"),
    ("有存档在 s3 上的,多语言好", "replicas.tier=object multilingual>=0.8", "", "match"),
    # partly understood: the rest is said, never dropped
    ("full checkpoints only, strong math", "math>=0.8", "full", "match"),
    ("smallest model that is good at math", "math>=0.8", "", "smallest"),
    ("继续训练的 run 数学强", "math>=0.8", "继续", "match"),
)

# Two readings or none, each with a word of the answer.
USERS_REFUSED = (
    ("low loss, strong math", "says no number"),
    ("highest loss", "says no number"),
    ("validation loss below 2", "metrics.val_loss"),
    ("val loss 最低", "metrics.val_loss"),
    ("strong math, beats 7B models", "No size is better than another"),
    ("chat can be weak, strong math", "does not matter"),
    ("代码和数学都不错,聊天可以差一点", "does not matter"),
    ("good math, but chat is meh", "more than one way"),
    ("great at coding and okay at chat", "more than one way"),
    ("decent at everything", "name what should be"),
    ("跑分最高的", "Not understood: 跑分最高"),
    ("困惑度最低的", "name it"),
    ("数学比上一个版本好", "comparison"),
    ("只有数学强其他都弱", "name what should be"),
    ("gsm8k 过 0.5", "was not understood"),
)
