"""Whole replies, as models write them: what counts as the answer, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from whileai_verify import MathEqual, MultipleChoice, Numeric

NOT_FIVE = r"""
\boxed{5}\boxed{6}
\boxed{6 (not 5)}
The answer is not 5
Answer: anything but 5
Answer: 5 or maybe 6
Answer: between 4 and 5
Answer: either 4 or 5
I guess 1, 2, 3, 4, 5
\boxed{1,2,3,4,5}
Answer: 5^2
Answer: 5!
Answer: -5
Answer: 5i
Answer: 5x
Answer: <5
Answer: ≥5
Answer: ≤ 5
Answer: x > 5
Answer: 5+
Answer: (5,
Answer: five or 5
Answer: 0.5e2
Answer: 5e
Answer: 55
Answer: 5/5
Answer: 5,5
Answer: 5 5
Answer: 5 and 5
Answer: No, 5 is wrong
Answer: 5 is wrong, it's 6
Answer: \sqrt{5}
Answer: |x|=5
Answer: 5?
The solutions are $x = 4$ and $x = 5$.
Either $4$ or $5$.
""".strip().split("\n")

FIVE = r"""
So the total is 5.
There are **5** of them.
$5$
The total is $5$.
Therefore $x = 5$.
x=5
The answer is 5, which is prime.
**Answer**: 5
\[ x = 5 \]
\[\boxed{5}\]
= 5
Final Answer: The final answer is $5$. I hope it is correct.
The final answer is: $\boxed{5}$
Thus, $2+3=5$.
<think>6?</think>It is 5.
""".strip().split("\n")


def reward(verifier: Any, gold: str, reply: str) -> Any:
    return verifier({"final_text": reply, "privileged": {"reference": gold}})["reward"]


@pytest.mark.parametrize("reply", NOT_FIVE)
def test_not_five(reply: str) -> None:
    assert reward(Numeric(), "5", reply) == 0.0
    pytest.importorskip("math_verify")
    assert reward(MathEqual(), "5", reply) == 0.0


@pytest.mark.parametrize("reply", [*FIVE, "### Answer\n5", "**Answer:**\n\n$$5$$"])
def test_five(reply: str) -> None:
    assert reward(Numeric(), "5", reply) == 1.0
    pytest.importorskip("math_verify")
    assert reward(MathEqual(), "5", reply) == 1.0


def test_a_list_in_prose_is_one_answer() -> None:
    pytest.importorskip("math_verify")
    reply = "The solutions to this equation are $x = 1$ and $x = 2$."
    assert reward(MathEqual(), r"\{1,2\}", reply) == 1.0
    assert reward(MathEqual(), "2", reply) == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: A, not B",
        "Answer: B? No, C",
        "The answer could be B or C",
        "Answer: anything but B",
        "Answer: not B",
        "It's either A or B",
        "A\nB\nC\nD",
        "A B C D",
        "(A) (B) (C)",
        "Answer: A and B and C",
        r"\boxed{A}\boxed{B}\boxed{C}",
        "B is a vitamin",
        "Answer: B is wrong",
    ],
)
def test_not_b(reply: str) -> None:
    assert reward(MultipleChoice(), "B", reply) == 0.0
