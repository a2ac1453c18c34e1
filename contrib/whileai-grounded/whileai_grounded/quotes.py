"""A verifier: nothing that the reply puts between quotation marks is invented.

An agent that quotes a policy, a document or a person must have read those words. The check is literal, after
stated normalisation (case, spaces, typographic marks, punctuation at the ends), and an ellipsis inside a
quotation may stand for left-out words. It does not know whether an unquoted statement is true, and it does not
score a reply without a quotation: nothing to check is not a pass.

Example:
    >>> row = {"prompt": "Policy: refunds take ten days.", "final_text": 'It says "refunds take ten days".'}
    >>> QuotesExist()(row)["reward"]
    1.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from whileai_grounded.defaults import MAX_QUOTES, MIN_QUOTE_WORDS
from whileai_grounded.shown import said, shown
from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example

_QUOTE = re.compile(r'"([^"\n]{1,2000})"|\u201c([^\u201d\n]{1,2000})\u201d|\u00ab([^\u00bb\n]{1,2000})\u00bb')
_ELLIPSIS = re.compile(r"\s*(?:\[?\.\.\.\]?|\u2026)\s*")
_MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_ENDS = " .,;:!?'\""


def plain(text: str) -> str:
    """Lower case, single spaces, plain marks: what two copies of one sentence have in common."""
    return " ".join(text.translate(_MARKS).casefold().split())


def quotations(text: str) -> list[str]:
    """The direct quotations of a text, in order."""
    return [next(group for group in match.groups() if group is not None) for match in _QUOTE.finditer(text)]


def occurs(quotation: str, text: str) -> bool:
    """Whether the parts of a quotation, split at an ellipsis, occur in ``text`` in order; both sides are plain."""
    position = 0
    for part in _ELLIPSIS.split(quotation):
        piece = part.strip(_ENDS)
        if piece:
            found = text.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
    return True


class QuotesExist:
    """Reward 1 when every direct quotation of the reply occurs in what the agent was shown, else 0.

    Args:
        min_words: A quotation of fewer words is not checked.
        max_quotes: A reply with more quotations is not scored.

    Raises:
        ParameterError: A limit is below 1.
    """

    examples = (
        Example(
            {"prompt": "Rule: bags over 23 kg cost extra.", "final_text": 'It says "bags over 23 kg cost extra."'}, 1.0
        ),
        Example(
            {"prompt": "Rule: bags over 23 kg cost extra.", "final_text": 'It says "bags over 20 kg are free".'}, 0.0
        ),
        Example({"prompt": "Rule: bags over 23 kg cost extra.", "final_text": "Heavy bags cost extra."}, None),
    )

    def __init__(self, min_words: int = MIN_QUOTE_WORDS.value, max_quotes: int = MAX_QUOTES.value) -> None:
        if min_words < 1 or max_quotes < 1:
            raise ParameterError("min_words and max_quotes must be at least 1", fix="leave them out for the defaults")
        self.min_words, self.max_quotes = min_words, max_quotes

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Compare the quotations of the reply with the row's other texts."""
        checked = [q for q in quotations(said(row)) if len(q.split()) >= self.min_words]
        if not checked:
            return {"reward": None, "status": "abstained", "reason": "the reply quotes nothing"}
        if len(checked) > self.max_quotes:
            return {"reward": None, "status": "abstained", "reason": f"more than {self.max_quotes} quotations"}
        texts = [plain(text) for text in shown(row)]
        if not texts:
            return {"reward": None, "status": "missing", "reason": "the row does not say what the agent was shown"}
        invented = [q for q in checked if not any(occurs(plain(q), text) for text in texts)]
        return {
            "reward": float(not invented),
            "reason": f"{len(checked) - len(invented)} of {len(checked)} quotations occur in what the agent was shown",
            "invented": invented,
        }
