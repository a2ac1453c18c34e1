"""What an eval set never reaches."""

import pytest

from whileai_kernel.errors import ParameterError, RowError
from whileai_measure import coverage_gap


def call(name: str) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "function": {"name": name, "arguments": "{}"}}],
    }


ROWS = [
    {
        "task_id": "a",
        "prompt": "I want a refund",
        "axes": {"channel": "chat", "tone": "calm"},
        "tools": [
            {"type": "function", "function": {"name": "get_order"}},
            {"type": "function", "function": {"name": "cancel"}},
        ],
        "messages": [{"role": "user", "content": "I want a refund"}, call("get_order"), call("get_order")],
    },
    {
        "task_id": "b",
        "prompt": "hello",
        "axes": {"channel": "mail", "tone": "angry"},
        "messages": [{"role": "system", "content": "never mention the warranty"}, call("secret")],
    },
    {"task_id": "c", "prompt": "nothing"},
]


def test_axes_pairs_tools_and_rules() -> None:
    gap = coverage_gap(
        ROWS,
        axes={"channel": ["chat", "mail", "phone"]},
        rules={"refund": "refund", "warranty": ["warranty", "guarantee"], "long": lambda row: len(row["prompt"]) > 10},
    )
    assert gap.rows == 3 and gap.without_axes == 1
    assert gap.axes["channel"] == {"chat": 1, "mail": 1, "phone": 0}
    assert (gap.pairs, gap.possible_pairs) == (2, 6)
    assert ("channel", "chat", "tone", "angry") in gap.missing_pairs
    assert gap.tools == {"get_order": 1, "cancel": 0}
    assert gap.undeclared_tools == ("secret",)
    assert gap.rules == {"refund": 1, "warranty": 0, "long": 1}  # a rule in the system prompt is no situation
    assert gap.never == ("channel=phone", "tool cancel", "rule warranty")
    assert "tool cancel" in str(gap) and "<table" in gap._repr_html_()
    assert gap.to_dict()["never"] == list(gap.never)


def test_text_rules_match_whole_words() -> None:
    assert coverage_gap([{"prompt": "prefunded"}], rules={"r": "refund"}).rules == {"r": 0}
    assert coverage_gap([{"prompt": "a REFUND."}], rules={"r": "refund"}).rules == {"r": 1}


def test_bad_input_is_named() -> None:
    with pytest.raises(RowError) as err:
        coverage_gap([{"axes": {}}, {"axes": "chat"}])
    assert (err.value.row, err.value.field) == (1, "axes")
    with pytest.raises(ParameterError):
        coverage_gap([], rules={"r": ""})
    with pytest.raises(ParameterError):
        coverage_gap([], tools=[{}])
    assert coverage_gap([]).rows == 0
