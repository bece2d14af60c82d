"""Twenty published figures, typed from the files that the two projects published: (project, run, step, task, metric,
value as text, standard error as text; empty where none is published)."""

FIGURES = (
    ("pythia", "pythia-70m", 143000, "lambada_openai", "acc", "0.18455268775470599", "0.00540468283118203"),
    ("pythia", "pythia-70m", 0, "lambada_openai", "ppl", "3684074.4512471026", "360109.5301043941"),
    ("pythia", "pythia-70m-deduped", 512, "winogrande", "acc", "0.500394632991318", "0.014052481306049516"),
    ("pythia", "pythia-160m", 1000, "piqa", "acc_norm", "0.5495103373231773", "0.011608491028638196"),
    ("pythia", "pythia-160m-deduped", 64, "sciq", "acc", "0.211", "0.012909130321042095"),
    ("pythia", "pythia-1b-bf16", 3000, "arc_easy", "acc", "0.4187710437710438", "0.010123487160167826"),
    (
        *("pythia", "pythia-1b-deduped", 143000, "hendrycksTest-high_school_mathematics", "acc"),
        *("0.18518518518518517", "0.02368407558532267"),
    ),
    (
        *("pythia", "pythia-1.4b", 73000, "crows_pairs_english", "pct_stereotype"),
        *("0.6141920095408467", "0.011890515487826653"),
    ),
    ("pythia", "pythia-1.4b-deduped", 143000, "logiqa", "acc_norm", "0.2857142857142857", "0.017719247798458293"),
    ("pythia", "pythia-6.9b", 143000, "arc_challenge", "acc_norm", "0.3506825938566553", "0.013944635930726089"),
    ("pythia", "pythia-6.9b-deduped", 13000, "lambada_openai", "ppl", "10.219578213223699", "0.293003624416877"),
    (
        *("pythia", "pythia-1.4b-deduped-baseline", 123000, "crows_pairs_french_gender", "likelihood_difference"),
        *("3.4481113707165107", "0.18155400127979776"),
    ),
    (
        *("pythia", "pythia-1.4b-deduped-intervention-long", 114000, "wsc", "acc"),
        *("0.5192307692307693", "0.049230010729780505"),
    ),
    (
        *("pythia", "pythia-6.9b-deduped-intervention", 143000, "crows_pairs_english_gender", "pct_stereotype"),
        *("0.678125", "0.026157917121490997"),
    ),
    (
        "dclm",
        "RW_v2_fasttext_length_OH_vs_unlabeled-open_lm_1b-warm=5000-lr=0p003-wd=0p033-cd=3e-05-bs=256-mult=1"
        "-seed=124-tokens=28795904000",
        *(54923, "boolq", "accuracy", "0.6064220070838928", ""),
    ),
    ("dclm", "wiseft_a80_mix3_long_47_mix3_34", 64388, "gsm8k_cot", "accuracy", "0.021228203549981117", ""),
    (
        "dclm",
        "hero-run1-2x-starcoder-math_datasets-open_lm_7b_swiglutorch-warm=5000-lr=0p001-wd=0p1-cd=3e-05-bs=2048"
        "-mult=1-seed=124-tokens=137788211200",
        *(32851, "math_qa", "accuracy", "0.2567884624004364", ""),
    ),
    (
        "dclm",
        "c4_original-d=1024_l=24_h=8-warm=2000-lr=0p003-wd=0p033-cd=3e-05-bs=512-mult=1-seed=124-tokens=8232325120",
        *(7850, "bbq", "accuracy", "0.4742392735047774", ""),
    ),
    (
        "dclm",
        "rpj_rpjCC_as_CC-open_lm_1b-warm=5000-lr=0p003-wd=0p033-cd=3e-05-bs=256-mult=1-seed=124",
        *(54923, "svamp_cot", "accuracy", "0.05000000074505806", ""),
    ),
    ("dclm", "rw_original-open_lm_1b-5.0", 274619, "hellaswag_zeroshot", "accuracy", "0.6079466342926025", ""),
)
