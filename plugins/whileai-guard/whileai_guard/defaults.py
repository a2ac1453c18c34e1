"""Sourced constants of whileai-guard: every number that shapes a marker, a finding or a report."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

HEDGES_PER_SENTENCE = Sourced(2, "this many weak hedges in one sentence mark a row as hedging", "convention, untested")
HEDGES_PER_TEXT = Sourced(3, "this many weak hedges in one message mark a row as hedging", "convention, untested")
APOLOGIES_PER_TEXT = Sourced(
    2, "this many apologies in one message are needless whatever their cause", "convention, untested"
)
QUOTE_WORDS = Sourced(
    8,
    "consecutive words of a private text that count as a quotation of it",
    "Brown et al. 2020 (GPT-3, arXiv:2005.14165) appendix C uses 8 to 13-grams for overlap; 8 is their lower bound",
)
REFERENCE_WORDS = Sourced(
    40,
    "consecutive words of a long reference answer that count as a quotation (80 % of a shorter one)",
    "measurement: first 2,400 GSM8K solutions of the shared data; at 8 words many right solutions, and at 24 words 1 % "
    "of them, were called leaks of the reference solution whose style they share",
)
REFERENCE_SHARE = Sourced(0.8, "share of a shorter reference answer that counts as a quotation", "as NEAR_SHARE")
DISTINCT_CHARS = Sourced(
    8,
    "a private token with letters and digits and at least this many characters is recognisable on its own",
    "convention, untested",
)
SHARED_REWARD_ROWS = Sourced(
    4,
    "from this many scored rows on, one shared reward is reported",
    "convention, untested",
)
MARKER_SPANS = Sourced(20, "spans that a marker shows at most; the rest is counted", "convention, untested")
LATIN_SHARE = Sourced(
    0.5,
    "share of Latin letters from which a reply is read as English; below it a marker of English phrases that finds "
    "nothing says None, not 1.0",
    "convention, untested",
)
SENTENCE_CHARS = Sourced(2000, "characters looked at where a text has no sentences", "convention, untested")
FINDING_EXAMPLES = Sourced(5, "rows that a finding names at most", "convention, untested")
NEAR_WORDS = Sourced(
    8,
    "a training text is compared closely with an evaluation text when they share this many consecutive words",
    "Brown et al. 2020 (GPT-3, arXiv:2005.14165) appendix C: 8 to 13-grams, 8 being the 5th percentile of lengths",
)
NEAR_SHARE = Sourced(
    0.8,
    "share of the evaluation text's words that must be shared, in runs or lined up with one, for a near hit",
    "Dubey et al. 2024 (Llama 3, arXiv:2407.21783) section 5.1.4 uses 8-gram token overlap with a tuned share; "
    "Touvron et al. 2023 (Llama 2, arXiv:2307.09288) appendix A.6 calls a sample contaminated from 0.8 on",
)
NEAR_RUN = Sourced(
    3,
    "words of an aligned run that count as shared once two texts are compared closely",
    "measurement: tests/bench/guard_decontaminate.py; with 10 % of the words changed, runs of 3 cover 0.87 of the "
    "words and runs of 8 only 0.73, which would miss the 0.8 bound",
)
SHORT_WORDS = Sourced(
    5,
    "an evaluation text of at least this many words, but fewer than NEAR_WORDS, also hits when it stands whole "
    "inside a longer text; shorter ones hit only when the whole text is equal",
    "convention, untested",
)
TEMPLATE_SHARE = Sourced(
    0.98,
    "share of words that must be shared once numbers and names are left out, for two texts to be of one template",
    "measurement: tests/bench/guard_decontaminate.py, numbers swapped in GSM8K questions",
)
SHORTER_RUNS = Sourced(
    5,
    "an evaluation text is compared closely from shared runs of its words over this, at least SHORT_WORDS and at most "
    "NEAR_WORDS",
    "measurement: tests/bench/guard_decontaminate.py, 20-word texts with 10 % of the words changed",
)
UNSPACED_FACTOR = Sourced(
    2,
    "characters of a script without spaces that weigh as one word in NEAR_WORDS, NEAR_RUN and SHORT_WORDS",
    "Sproat et al. 1996 (Computational Linguistics 22:3): about 1.6 characters per word in Chinese; rounded up",
)
BOILERPLATE_TEXTS = Sourced(
    3,
    "a run of words is boilerplate when it stands in at least this many distinct texts on each side",
    "measurement: tests/bench/guard_decontaminate.py, no false hit from shared preambles at 3",
)
BOILERPLATE_AGAINST_SHARE = Sourced(
    0.001, "and in at least this share of the distinct evaluation texts", "as BOILERPLATE_TEXTS"
)
BOILERPLATE_TRAIN_SHARE = Sourced(
    0.0001, "and in at least this share of the distinct training texts", "as BOILERPLATE_TEXTS"
)
CANDIDATE_SHARE = Sourced(
    0.2,
    "share of the evaluation text's words in shared long runs from which two texts are compared closely",
    "measurement: tests/bench/guard_decontaminate.py; 40-word texts with 10 % of the words changed stay above it",
)
SIMILARITY = Sourced(
    0.8,
    "cosine similarity of embeddings from which a text is a semantic hit",
    "measurement with guard/static on 12 hand-written paraphrases and 1,000 GSM8K questions: recall 3 of 12 and no "
    "false hit at 0.8, 8 of 12 and 4 false at 0.7; depends on the embedder, calibrate it on pairs of your own",
)
BLOCK_CHARS = Sourced(
    400_000,
    "characters that are tokenised at once; bounds memory and changes no result",
    "measurement: between 1e5 and 1e6 the speed is flat on a machine with 2 MB of cache per core",
)
SPANS = Sourced(3, "matched spans that are shown per hit, longest first", "convention, untested")
HOLDOUT = Sourced(0.1, "share of groups that is held out", "convention, untested")
SPLIT_SEED = Sourced(0, "seed of the split", "convention, untested")
SCAN_ALPHA = Sourced(
    0.05,
    "family-wise error of a scan: chance of any alarm when nothing predicts reward",
    "convention, untested",
)
SCAN_PERMUTATIONS = Sourced(
    399,
    "permutations of the rewards within tasks; the least adjusted p value is 1 / (permutations + 1)",
    "Davison and Hinkley 1997, Bootstrap Methods and their Application, section 4.2.5: 99 to 999 at level 0.05",
)
SCAN_SEED = Sourced(0, "seed of the permutations", "convention, untested")
PHRASE_WORDS = Sourced(4, "longest phrase that is a feature, in words", "convention, untested")
PHRASE_SUPPORT = Sourced(
    8.0,
    "least within-task variation of a phrase (sum of squares about the task means), about that many rows",
    "measurement: tests/bench/guard_scan.py; below 5 the tails of rare phrases raise the floor for all features",
)
PHRASES = Sourced(
    4000, "phrases kept at most, those with the most within-task variation", "measurement: memory of 50,000 rows"
)
BUDGET = Sourced(
    {
        "length": 3.5,
        "position": 2.75,
        "tools": 2.0,
        "format": 3.0,
        "counts": 1.0,
        "markers": 1.0,
        "plugin": 1.0,
        "words": 0.3,
        "loose": 0.06,
        "fixed": 2.64,
        "conjunctions": 0.5,
    },
    "relative share of the error budget of each group of features, phrases being words, fixed wordings and loose "
    "runs; what is not in the data takes nothing",
    "Genovese, Roeder and Wasserman 2006 (Biometrika 93:509): weighted testing holds the family-wise error for any "
    "weights that do not look at the rewards; the values are a measurement, tests/bench/guard_scan.py, chosen for "
    "equal power of the six planted kinds at strength 0.08",
)
COHESION = Sourced(
    0.5,
    "a phrase is a fixed wording when at least this share of its parts' occurrences is inside it",
    "measurement: tests/bench/guard_scan.py; chance runs of a Zipf vocabulary stay below 0.15",
)
MORE_SHARE = Sourced(
    0.75,
    "share of a feature's budget for more of it being paid, the rest for less; positions, markers and features of "
    "plugins have 0.5",
    "convention, untested: hacks add (Singhal et al. 2023, arXiv:2310.03716, on length)",
)
CONJUNCTION_PARTS = Sourced(
    24, "presence features that are paired, those with the most within-task variation", "measurement: 276 pairs"
)
MIN_MIXED_TASKS = Sourced(
    5, "tasks whose rewards differ that a scan needs; below, the regime is unknown", "convention, untested"
)
EXHAUSTED_SHARE = Sourced(
    0.9, "share of tasks that always pass from which the pool is called exhausted", "convention, untested"
)
MONITOR_BATCHES = Sourced(20, "batches per window of the monitor", "convention, untested")
MONITOR_ALPHA = Sourced(
    0.01,
    "chance of a false alarm over a whole flat run, per detector",
    "measurement: tests/test_monitor.py, no alarm in 20 flat runs of 100 batches",
)
MONITOR_SCAN_EVERY = Sourced(100, "batches between feature scans of the monitor", "convention, untested")
MONITOR_LENGTH_RATIO = Sourced(
    1.25, "growth of the mean reply length below which there is no length alarm", "convention, untested"
)
MONITOR_COLLAPSE = Sourced(
    0.2, "fall of the share of distinct word pairs below which there is no collapse alarm", "convention, untested"
)
MONITOR_MIN_STEPS = Sourced(40, "batches before the first check", "convention, untested")
DUPLICATE_JACCARD = Sourced(
    0.8,
    "Jaccard similarity of word shingles from which two texts are near-duplicates",
    "Lee et al. 2022 (arXiv:2107.06499) section 4.2 use 0.8",
)
SHINGLE_WORDS = Sourced(5, "words per shingle", "Lee et al. 2022 (arXiv:2107.06499) appendix A use 5")
MINHASH_PERMUTATIONS = Sourced(128, "length of a MinHash signature", "Broder 1997: error of 1 / sqrt(n), 0.09 at 128")
DUPLICATE_RECALL = Sourced(
    0.99, "expected recall at the threshold that the bands are chosen for", "convention, untested"
)
