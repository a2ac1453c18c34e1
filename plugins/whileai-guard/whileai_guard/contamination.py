"""Decontamination: training rows that hold an evaluation text, by rules in order, with the spans side by side.

| rule | hits when |
| --- | --- |
| `task` | both rows name the same task id |
| `exact` | the texts are equal after normalisation (compatibility forms, case, accents, spaces, zero-width characters, LaTeX spacing, punctuation of prose) |
| `short` | an evaluation text of 5 to 7 words stands whole inside the training text |
| `near` | at least `share` of the evaluation text's words stand in shared runs, anywhere in the training text |
| `template` | the texts differ in numbers and names only; reported apart, kept unless asked |
| `semantic` | an embedder that you pass finds them similar |

The first rule that hits names the hit. A pair that differs only in numbers and names is a template hit, never a near
one. Runs of words that are frequent on both sides (preambles, tool schemas, greetings) are boilerplate and count for
nothing. Paraphrases are out of reach of the lexical rules, and the report says so.

Example:
    >>> report = decontaminate(["compute   17*3 ", "Compute 17*4"], ["Compute 17*3"])
    >>> report.flagged, [hit.rule for hit in report.templates]
    ([0], ['template'])
"""  # noqa: E501 - a table

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from whileai_guard._compare import Comparer
from whileai_guard._hits import RULES, Decontaminated, Hit, SpanPair
from whileai_guard._overlap import Candidate, Index, blocks
from whileai_guard._sources import Against, Items, Text, open_items
from whileai_guard.defaults import (
    BOILERPLATE_TEXTS,
    CANDIDATE_SHARE,
    NEAR_RUN,
    NEAR_SHARE,
    NEAR_WORDS,
    SHORT_WORDS,
    SHORTER_RUNS,
    SIMILARITY,
    SPANS,
    TEMPLATE_SHARE,
    UNSPACED_FACTOR,
)
from whileai_kernel.errors import ParameterError, unknown_name

__all__ = ["decontaminate"]

Embedder = Callable[[Sequence[str]], Any]
DROP = ("task", "exact", "short", "near", "semantic")


def decontaminate(
    rows: Iterable[Any] | str | Path,
    against: Iterable[Any] | str | Path,
    *,
    fields: Sequence[str] = ("prompt",),
    against_fields: Sequence[str] | None = None,
    drop: Sequence[str] = DROP,
    n: int = NEAR_WORDS.value,
    share: float = NEAR_SHARE.value,
    run: int = NEAR_RUN.value,
    short: int = SHORT_WORDS.value,
    unspaced_factor: int = UNSPACED_FACTOR.value,
    boilerplate_texts: int = BOILERPLATE_TEXTS.value,
    candidate_share: float = CANDIDATE_SHARE.value,
    shorter_runs: int = SHORTER_RUNS.value,
    template_share: float = TEMPLATE_SHARE.value,
    embedder: Embedder | str | None = None,
    similarity: float = SIMILARITY.value,
    spans: int = SPANS.value,
) -> Decontaminated:
    """Find and leave out training rows that hold evaluation texts.

    Args:
        rows: Training rows or texts, or the path of a JSONL file (read twice, never held as a whole; then the
            report has no rows, see `Decontaminated.write`).
        against: Evaluation rows or texts, or the path of a JSONL file. Held in memory.
        fields: Fields of the training rows to compare: `"prompt"`, `"final_text"`, `"system_prompt"`, `"messages"`
            (each user or assistant message), `"reference"`, or a dotted path.
        against_fields: Fields of the evaluation rows; by default those of `fields`.
        drop: Rules whose hits leave the result. Hits of other rules are reported only.
        n: Consecutive shared words that make two texts worth a close look.
        share: Share of the evaluation text's words in shared runs for a near hit.
        run: Words of such a run.
        short: Least words of a short evaluation text that is found inside longer ones.
        unspaced_factor: Characters that weigh as a word in scripts without spaces.
        boilerplate_texts: Distinct texts on each side from which a shared run is boilerplate.
        candidate_share: Share of words in runs of `n` for a close look.
        shorter_runs: A text of few words is looked at closely from shared runs of its words over this.
        template_share: Share of words that must be shared without numbers and names, for a template hit.
        embedder: Texts to vectors (`n x d`), or the registered name of one, for the semantic rule; `None` skips it.
        similarity: Cosine similarity for a semantic hit.
        spans: Matched spans shown per hit.

    Returns:
        `Decontaminated`: clean rows, hits with spans, counts per rule, and what could not be checked.

    Raises:
        ParameterError: A number is out of its range, or a rule is unknown.
    """
    for rule in drop:
        if rule not in RULES:
            unknown_name("rule", rule, RULES)
    _check(n, share, min(run, shorter_runs), short, similarity)
    evals = Against(open_items(against, against_fields or fields))
    train = open_items(rows, fields)
    index = Index(evals.texts, n=n, short=short, unspaced_factor=unspaced_factor, shorter_runs=shorter_runs)
    books = _Books()
    for block in blocks(_new_texts(train, books, evals)):
        index.scan(block)
    pairs, short_pairs, boiler = index.candidates(candidate_share=candidate_share, boilerplate_texts=boilerplate_texts)
    wanted = {p.text for p in pairs} | {t for t, _ in (*short_pairs, *index.exact_hits, *index.template_hits)}
    texts = train.fetch({number: books.one_user(number) for number in sorted(wanted)})
    comparer = Comparer(
        index, evals.texts, texts, boiler, share=share, run=run, spans=spans, template_share=template_share
    )
    every = [*index.exact_hits, *short_pairs, *((p.text, p.against) for p in pairs)]
    common = _common_messages(index, evals, books, every, boilerplate_texts)
    index.exact_hits = [hit for hit in index.exact_hits if hit[1] not in common]
    pairs = [p for p in pairs if p.against not in common]
    short_pairs = [hit for hit in short_pairs if hit[1] not in common]
    found = _close_look(index, comparer, pairs, short_pairs)
    if embedder is not None and evals.texts:
        _semantic(train, books, evals, found, embedder, similarity)
    return _assemble(train, evals, books, found, drop, embedder is not None, index, short, n)


def _check(n: int, share: float, run: int, short: int, similarity: float) -> None:
    if n < 1 or run < 1 or short < 1:
        raise ParameterError("n, run, short and shorter_runs must be at least 1", fix="leave them out for the defaults")
    if not 0.0 < share <= 1.0 or not -1.0 <= similarity <= 1.0:
        raise ParameterError("share must lie in (0, 1] and similarity in [-1, 1]", fix="pass share=0.8")


class _Books:
    """Distinct training texts and the rows that have them, in a few bytes per row: rows may be many millions."""

    def __init__(self) -> None:
        self.number: dict[bytes, int] = {}
        self.first = array("q")
        self.first_field = array("i")
        self.more: dict[int, list[tuple[int, int]]] = {}
        self.fields: dict[str, int] = {}
        self.rows = 0
        self.empty = 0
        self.with_task = 0
        self.task_hits: dict[int, int] = {}

    def add(self, position: int, text: Text) -> bool:
        """Record that a row has a text; return whether the text is new."""
        field = self.fields.setdefault(text.field, len(self.fields))
        known = self.number.setdefault(text.digest, len(self.first))
        if known < len(self.first):
            self.more.setdefault(known, []).append((position, field))
            return False
        self.first.append(position)
        self.first_field.append(field)
        return True

    def users(self, number: int) -> list[tuple[int, str]]:
        """Return the rows that have a text, and in which field."""
        names = list(self.fields)
        first = (self.first[number], names[self.first_field[number]])
        return [first, *((position, names[field]) for position, field in self.more.get(number, ()))]

    def one_user(self, number: int) -> tuple[int, str]:
        """Return the first row that has a text, and in which field."""
        return self.users(number)[0]


def _new_texts(train: Items, books: _Books, evals: Against) -> Iterable[str]:
    for item in train:
        books.rows += 1
        books.with_task += item.task_id is not None
        if item.task_id is not None and item.task_id in evals.by_task:
            books.task_hits[item.position] = evals.by_task[item.task_id]
        books.empty += not item.texts
        for text in item.texts:
            if books.add(item.position, text):
                yield text.text


def _common_messages(
    index: Index, evals: Against, books: _Books, hits: Iterable[tuple[int, int]], least: int
) -> set[int]:
    """Return evaluation messages that are common on both sides: a greeting is not an exam.

    Whole prompts are never common in this sense, however often they stand in either set.
    """
    owners: dict[int, set[int]] = {}
    for number, value in enumerate(index.doc_hash.tolist()):
        if evals.fields[number].startswith("messages["):
            owners.setdefault(value, set()).add(evals.owner[number])
    users: dict[int, set[int]] = {}
    for text, own in hits:
        if all(field.startswith("messages[") for _, field in books.users(text)):
            users.setdefault(own, set()).update(position for position, _ in books.users(text))
    return {
        own
        for own, positions in users.items()
        if len(positions) >= least and len(owners.get(int(index.doc_hash[own]), ())) >= least
    }


Found = dict[int, tuple[str, int, float, tuple[SpanPair, ...]]]


def _close_look(
    index: Index, comparer: Comparer, pairs: Sequence[Candidate], short_pairs: Sequence[tuple[int, int]]
) -> Found:
    """Return the best hit of each distinct training text: rule, evaluation text, coverage, spans."""
    found: Found = {}

    def offer(text: int, rule: str, own: int, share: float, spans: tuple[SpanPair, ...]) -> None:
        old = found.get(text)
        if old is None or (RULES.index(rule), -share, own) < (RULES.index(old[0]), -old[2], old[1]):
            found[text] = (rule, own, share, spans)

    for text, own in index.exact_hits:
        if comparer.same_code(text, own):
            offer(text, "exact", own, 1.0, comparer.whole(text, own))
    for text, own in short_pairs:
        offer(text, "short", own, 1.0, comparer.short(text, own))
    settled = {text for text, hit in found.items() if hit[0] == "exact"}
    for pair in pairs:
        if pair.text not in settled:
            result = comparer.compare(pair)
            if result is not None:
                offer(pair.text, result[0], pair.against, result[1], result[2])
    for text, own in index.template_hits:
        if text not in found:
            offer(text, "template", own, 1.0, comparer.whole(text, own))
    return found


def _semantic(
    train: Items, books: _Books, evals: Against, found: Found, embedder: Embedder | str, similarity: float
) -> None:
    from whileai_guard.embedders import resolve_embedder, unit_rows

    embed = resolve_embedder(embedder)
    own = unit_rows(embed(evals.texts))
    open_texts = [number for number in range(len(books.first)) if number not in found]
    step = 2048
    for start in range(0, len(open_texts), step):
        part = open_texts[start : start + step]
        texts = train.fetch({number: books.one_user(number) for number in part})
        scores = unit_rows(embed([texts[number] for number in part])) @ own.T
        best = np.argmax(scores, axis=1)
        for line, number in enumerate(part):
            score = float(scores[line, best[line]])
            if score >= similarity:
                found[number] = ("semantic", int(best[line]), score, ())


def _assemble(
    train: Items,
    evals: Against,
    books: _Books,
    found: Found,
    drop: Sequence[str],
    with_semantic: bool,
    index: Index,
    short: int,
    n: int,
) -> Decontaminated:
    best: dict[int, Hit] = {}
    for position, own in books.task_hits.items():
        best[position] = Hit(position, "", "task", own, evals.names[own], "task_id", "task_id", 1.0, ())
    for number, (rule, text, coverage, spans) in found.items():
        item = evals.owner[text]
        for position, field in books.users(number):
            hit = Hit(position, "", rule, item, evals.names[item], field, evals.fields[text], coverage, spans)
            old = best.get(position)
            if old is None or (RULES.index(hit.rule), -hit.coverage) < (RULES.index(old.rule), -old.coverage):
                best[position] = hit
    names = train.names(best)
    ordered = [replace(best[position], rollout_id=names[position]) for position in sorted(best)]
    leaving = {hit.position for hit in ordered if hit.rule in drop}
    kept = train.kept(leaving)
    return Decontaminated(
        rows=kept,
        hits=tuple(h for h in ordered if h.rule != "template"),
        templates=tuple(h for h in ordered if h.rule == "template"),
        dropped=tuple(sorted(leaving)),
        counts=dict(Counter(h.rule for h in ordered)),
        n_rows=books.rows,
        n_against=evals.items,
        not_checked=tuple(_not_checked(books, evals, with_semantic, index, short, n)),
        source=train.path,
    )


def _not_checked(books: _Books, evals: Against, with_semantic: bool, index: Index, short: int, n: int) -> Iterable[str]:
    if not evals.items:
        yield "no rule could run: there are no evaluation rows"
    elif not evals.texts:
        yield f"no rule but the task id could run: the evaluation rows have no text in {', '.join(evals.asked)}"
    if not books.rows:
        yield "no rule could run: there are no training rows"
    if books.empty:
        yield f"{books.empty} training rows have no text in the compared fields"
    if evals.empty:
        yield f"{evals.empty} evaluation rows have no text in the compared fields"
    if not with_semantic:
        yield "paraphrases were not checked: no embedder was given"
    brief = int(((index.lengths > 0) & (index.lengths < short * index.factor)).sum())
    if brief:
        yield f"{brief} evaluation texts have fewer than {short} words and were compared whole only"
    middle = int(((index.lengths >= short * index.factor) & (index.lengths < n * index.factor)).sum())
    if middle:
        yield f"{middle} evaluation texts have fewer than {n} words: re-worded copies of them were not checked"
    wordless = int((index.lengths == 0).sum())
    if wordless:
        yield f"{wordless} evaluation texts have no words at all"
    if not evals.by_task or not books.with_task:
        yield "task ids were not compared: one side has none"
