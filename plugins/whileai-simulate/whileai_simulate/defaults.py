"""Every number that shapes a simulation, with its meaning and its source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

OFF_TOPIC = Sourced(0.05, "wanted share of asks that need no tool", "convention, untested")
STRENGTH = Sourced(
    2, "combinations of this many axis values are covered", "Kuhn, Wallace, Gallo 2004: pairs trigger most faults"
)
SITUATIONS = Sourced(16, "situations of a run when neither situations nor budget is given", "convention, untested")
REPEATS = Sourced(4, "rollouts per situation", "convention, untested")
NEAR_DUPLICATE = Sourced(
    0.9, "word 3-gram Jaccard similarity from which two asks are near-duplicates", "convention, untested"
)
NEAR_WINDOW = Sourced(
    4096,
    "asks, the last ones kept, that a new ask is compared with for near-duplicates; the same words count for ever",
    "convention, untested: keeps the filter at about 5 MiB",
)
NGRAM = Sourced(3, "words per shingle of the near-duplicate rule", "convention, untested")
CONCURRENCY = Sourced(16, "rollouts in flight at once", "convention, untested")
DEADLINE_S = Sourced(120.0, "seconds that one rollout may take", "convention, untested")
MAX_TURNS = Sourced(12, "turns of the agent before a rollout is truncated", "convention, untested")
GIVE_UP_AFTER = Sourced(20, "rollouts that all fail before an agent is called off", "convention, untested")
SEEDED_RATE = Sourced(
    1 / 3, "share of rollouts on which the seeded agent misbehaves", "convention, untested: pass@1 0.67"
)
PROBES = Sourced(
    2,
    "rollouts of a task before its policy decides",
    "DAPO (Yu et al. 2025, section 3.2): uniform groups teach nothing",
)
USER_PATIENCE = Sourced(4, "answers that the scripted user gives before it stops", "convention, untested")
SHARE_TOLERANCE = Sourced(
    0.05, "allowed distance of a share from what was asked, beyond the covering array", "measurement: tests"
)
LEAK_NGRAM = Sourced(8, "words in a row that an ask may not share with a trace", "convention, untested")
ADAPTIVE_FLOOR = Sourced(
    0.5, "adaptive repeats go on while another verdict is at least this likely", "convention, untested"
)
REWORDINGS = Sourced(25, "wordings tried before a near-duplicate ask is kept and counted", "convention, untested")
MODE_EXPLORE = Sourced(
    {"repeats": 1, "repeat_policy": "none"},
    "preset of mode='explore': one look at many situations",
    "convention, untested",
)
MODE_SFT = Sourced(
    {"repeats": 4, "repeat_policy": "fixed"}, "preset of mode='sft': best of 4 to imitate", "convention, untested"
)
MODE_RL = Sourced(
    {"repeats": 8, "repeat_policy": "fixed"},
    "preset of mode='rl': groups of 8 for advantages",
    "DeepSeekMath (Shao et al. 2024) uses 64, open recipes 8 to 16; convention, untested",
)
MODE_ADAPTIVE = Sourced(
    {"repeats": 8, "repeat_policy": "adaptive"},
    "preset of mode='adaptive': most where verdicts may differ",
    "convention, untested",
)
INTERVAL_HALF_WIDTH = Sourced(
    0.1, "half width of the 95 % interval of pass@1 that recommend() plans for", "convention, untested"
)
USER_REPEAT = Sourced(
    0.9, "word 3-gram Jaccard similarity from which a simulated user repeats itself", "convention, untested"
)
USER_REPEAT_WORDS = Sourced(
    5, "words from which a repeated message counts; 'yes' may be said twice", "convention, untested"
)
USER_RETRIES = Sourced(
    2, "further requests for one message of a model user that cannot be used", "convention, untested"
)
USER_MAX_TOKENS = Sourced(
    1024, "tokens of one reply of a model user or writer when its model names no max_tokens", "convention, untested"
)
WRITER_RETRIES = Sourced(2, "further requests for one ask before the offline writer words it", "convention, untested")
WRITER_CONCURRENCY = Sourced(8, "asks that a model writer has in flight at once", "convention, untested")
ESTIMATE_TURNS = Sourced(
    3,
    "replies of the agent per rollout that an estimate assumes, beside one per call of its plan",
    "convention, untested",
)
ESTIMATE_REPLY_TOKENS = Sourced(150, "tokens of a reply that an estimate assumes", "convention, untested")
BYTES_PER_TOKEN = Sourced(
    3.0,
    "UTF-8 bytes that count as one token before a server has counted",
    "measurement: English prose has about 4 bytes per token with byte-pair vocabularies of 50k and more; 3 errs on "
    "the side of more tokens",
)
CONFIDENCE = Sourced(0.95, "level of the interval of an audit", "convention, untested")
AUDIT_EXAMPLES = Sourced(2, "examples that an audit prints per fault", "convention, untested")
NULL_SITUATIONS = Sourced(
    40, "situations on which preflight() has each do-nothing agent graded", "convention, untested"
)
