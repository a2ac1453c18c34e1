"""Recall and precision of decontamination per kind of copy, on planted truth, beside a plain 8-gram share.

Run: ``python tests/bench/guard_decontaminate.py [COPIES_PER_KIND]``. Made texts have a Zipf vocabulary; real texts are
the GSM8K questions of ../shared/data when they are there. Every clean training text begins with a preamble that every
evaluation text has too. A false hit is a row that holds no copy.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

from whileai_guard import decontaminate, near_duplicates

SHARED = next((p / "shared/data" for p in Path(__file__).resolve().parents if (p / "shared/data").exists()), None)
PREAMBLE = "You are a careful assistant. Read the question twice, think step by step, and give only the final number."
OTHER = ["lantern", "copper", "meadow", "violet", "harbour", "pebble", "saddle", "thimble"]


def changed(text: str, rng: random.Random, share: float = 0.1) -> str:
    words = text.split()
    for at in rng.sample(range(len(words)), max(1, round(share * len(words)))):
        words[at] = rng.choice(OTHER)
    return " ".join(words)


def respelled(text: str, rng: random.Random) -> str:
    wide = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" and rng.random() < 0.2 else c for c in text)
    return wide.replace("fi", "\ufb01").replace(" ", " \u200b")


def punctuated(text: str) -> str:
    return re.sub(r"[,.;:!?](?=\s|$)", "", text).replace(" and ", ", and ") + " ..."


def numbers(text: str, rng: random.Random) -> str:
    return re.sub(r"\d+", lambda m: str(int(m.group(0)) + rng.randint(1, 9)), text)


def plain_rule(train: list[str], evals: list[str]) -> set[int]:
    """Return rows that hold 80 % of the 8-grams of an evaluation text: the rule that most tools have."""

    def grams(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}

    own = [grams(t) for t in evals]
    index: dict[tuple[str, ...], list[int]] = {}
    for n, found in enumerate(own):
        for gram in found:
            index.setdefault(gram, []).append(n)
    hits = set()
    for position, text in enumerate(train):
        counts: dict[int, int] = {}
        for gram in grams(text):
            for n in index.get(gram, ()):
                counts[n] = counts.get(n, 0) + 1
        if any(c >= 0.8 * len(own[n]) for n, c in counts.items()):
            hits.add(position)
    return hits


def made(rng: random.Random, n: int, words: int) -> list[str]:
    syllables = [a + b for a in "bcdfglmnprst" for b in "aeiou"]
    vocabulary = ["".join(rng.choice(syllables) for _ in range(3)) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / i for i in range(1, len(vocabulary) + 1)))
    out = []
    for _ in range(n):
        body = rng.choices(vocabulary, cum_weights=weights, k=words - 4)
        out.append(
            " ".join([*body[: words // 2], str(rng.randint(2, 99)), *body[words // 2 :], str(rng.randint(2, 99))])
        )
    return out


def study(name: str, evals: list[str], others: list[str], copies: int) -> None:
    rng = random.Random(1)
    kinds: dict[str, Callable[[str], str]] = {
        "exact": lambda t: t,
        "re-cased": str.upper,
        "re-spelled": lambda t: respelled(t, rng),
        "re-punctuated": punctuated,
        "10 % of words changed": lambda t: changed(t, rng),
        "embedded": lambda t: f"{rng.choice(others)} {t} {rng.choice(others)}",
        "embedded, 10 % changed": lambda t: f"{rng.choice(others)} {changed(t, rng)} {rng.choice(others)}",
        "numbers swapped": lambda t: numbers(t, rng),
    }
    train = [f"{PREAMBLE} {t}" for t in others]
    truth: dict[int, str] = {}
    for kind, copy in kinds.items():
        for text in rng.sample(evals, copies):
            truth[len(train)] = kind
            train.append(f"{PREAMBLE} {copy(text)}")
    asked = [f"{PREAMBLE} {t}" for t in evals]
    report = decontaminate(train, asked)
    plain = plain_rule(train, asked)
    rule = {h.position: h.rule for h in (*report.hits, *report.templates)}
    print(f"\n{name}: {len(train)} training texts, {len(evals)} evaluation texts, one preamble in all of them")
    print(f"{'kind':24} {'recall':>7} {'plain 8-gram':>13}  rules")
    for kind in kinds:
        places = [p for p, k in truth.items() if k == kind]
        found = [rule[p] for p in places if p in rule]
        names = ", ".join(f"{r} {found.count(r)}" for r in sorted(set(found)))
        print(
            f"{kind:24} {len(found) / len(places):7.2f} {sum(p in plain for p in places) / len(places):13.2f}  {names}"
        )
    false = [p for p in rule if p not in truth]
    print(f"{'false hits':24} {len(false):7d} {len(plain - set(truth)):13d}  of {len(others)} clean texts", flush=True)


PARAPHRASES = (
    ("A baker makes 12 trays of 9 rolls each morning and sells all but 7. How many rolls does he sell?",
     "Each morning a bakery turns out a dozen trays holding nine buns apiece; seven stay unsold. How many go?"),
    ("Lena reads 15 pages a day. How many days does she need for a book of 240 pages?",
     "If a 240-page novel is read at fifteen pages daily, after how many days is Lena done with it?"),
    ("A train travels 60 miles per hour for 3 hours and then 45 miles per hour for 2 hours. How far does it go?",
     "For three hours a train runs at 60 mph, for two more at 45 mph. What distance does it cover in all?"),
    ("Tom buys 4 shirts at $18 each and gets a 10% discount. What does he pay?",
     "Four shirts priced 18 dollars apiece, ten percent off at the till: how much money leaves Tom's wallet?"),
    ("A garden is 12 meters long and 7 meters wide. How much fence is needed to enclose it?",
     "What length of fencing goes all the way round a plot measuring 12 m by 7 m?"),
    ("Maria has three times as many marbles as Jo. Together they have 48. How many has Jo?",
     "Jo and Maria own 48 marbles between them, and Maria's share is triple Jo's. Find Jo's share."),
    ("A tank holds 500 liters and loses 8 liters an hour. How much is left after 20 hours?",
     "Water leaks from a full 500 litre tank at 8 litres hourly; what remains once twenty hours are over?"),
    ("Each of 6 friends pays $14 for pizza and $3 for a drink. What is the total bill?",
     "Six people each spend fourteen dollars on pizza plus three on something to drink. How big is the whole bill?"),
    ("A school has 420 pupils and 35 of every 100 walk there. How many walk?",
     "Out of the four hundred and twenty children at a school, 35 percent come on foot. Give their number."),
    ("Ben saves $25 a week. After how many weeks can he buy a bike for $325?",
     "How long until Ben, putting aside 25 dollars weekly, can afford a bicycle costing 325 dollars?"),
    ("A recipe for 4 people needs 300 grams of rice. How much is needed for 10 people?",
     "Rice for four servings weighs 300 g. What weight do ten servings call for?"),
    ("Nina is 9 years older than her brother, who is 13. How old will Nina be in 5 years?",
     "Nina's brother is thirteen and she was born nine years before him. State her age five years from now."),
    ("A farmer packs 1,260 eggs in boxes of 30. How many boxes does he fill?",
     "Thirty eggs fit in a carton. How many cartons will hold a farmer's 1,260 eggs?"),
    ("A phone costs $640 and its price drops by a quarter. What is the new price?",
     "After losing 25% of its 640 dollar price tag, what does the phone sell for?"),
    ("Two buses carry 52 people each and a van carries 11. How many people travel?",
     "Count the passengers: a van with eleven on board and a pair of buses with fifty-two in each."),
    ("Ann cuts a 3 meter ribbon in pieces of 20 centimeters. How many pieces does she get?",
     "Into how many 20 cm lengths can Ann divide three metres of ribbon?"),
)  # fmt: skip


def paraphrase_study(questions: list[str]) -> None:
    """Recall of the static embedder on hand-written paraphrases, and false hits among other questions."""
    originals = [a for a, _ in PARAPHRASES]
    train = [b for _, b in PARAPHRASES] + questions
    print(f"\nparaphrases: {len(PARAPHRASES)} by hand among {len(questions)} other questions, guard/static")
    lexical = decontaminate(train, originals)
    print(f"{'lexical rules only':24} recall {len(lexical.flagged) / len(PARAPHRASES):.2f}")
    for similarity in (0.85, 0.8, 0.75, 0.7):
        report = decontaminate(train, originals, embedder="guard/static", similarity=similarity)
        right = [h for h in report.hits if h.position < len(PARAPHRASES) and h.against == h.position]
        false = [h for h in report.hits if h.position >= len(PARAPHRASES)]
        share = len(right) / max(1, len(report.hits))
        print(
            f"similarity {similarity:<13} recall {len(right) / len(PARAPHRASES):.2f}  precision {share:.2f}  "
            f"{len(false)} false hits"
        )


def near_duplicate_study(copies: int) -> None:
    """Recall of the MinHash route at known similarity: each changed word changes five of 196 shingles."""
    rng = random.Random(2)
    texts = made(rng, 2000, 200)
    print("\nnear-duplicates by MinHash, 2,000 texts of 200 words, threshold 0.8")
    for changes in (4, 3, 2, 1):
        true = (196 - 5 * changes) / (196 + 5 * changes)
        planted = {}
        for at in rng.sample(range(2000), copies):
            words = texts[at].split()
            for place in range(changes):
                words[20 + 40 * place] = f"other{place}"
            planted[at] = 2000 + len(planted)
            texts.append(" ".join(words))
        report = near_duplicates(texts)
        found = {(a, b) for a, b, _ in report.pairs}
        hits = sum((at, copy) in found for at, copy in planted.items())
        false = len(found - set(planted.items()))
        print(
            f"similarity {true:.3f}: recall {hits / copies:.3f} (expected at 0.8: {report.recall:.3f}), {false} false"
        )
        del texts[2000:]


def main() -> None:
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rng = random.Random(0)
    study("made, 200 words", made(rng, 400, 200), made(rng, 2000, 200), copies)
    study("made, 40 words", made(rng, 400, 40), made(rng, 2000, 40), copies)
    study("made, 20 words", made(rng, 400, 20), made(rng, 2000, 20), copies)
    if SHARED is not None:
        lines = (SHARED / "gsm8k_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()
        questions = [json.loads(line)["question"] for line in lines]
        study("GSM8K questions", questions[:400], questions[400:], copies)
        paraphrase_study(questions[:1000])
    else:
        print("GSM8K questions: ../shared/data is not here")
    near_duplicate_study(copies)


if __name__ == "__main__":
    main()
