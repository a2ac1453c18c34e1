"""Pictures are well-formed SVG, hold the numbers, and survive odd names."""

import xml.etree.ElementTree as ET

from whileai_measure import compare, pass_at
from whileai_measure.plots import curve_plot, differences_plot, interval_plot

NS = "{http://www.w3.org/2000/svg}"
ROWS = [
    {
        "task_id": f"t{i}",
        "reward": float((i + j) % 3 > 0),
        "g": "<b>\ud83d" if i % 2 else "calm & short",
        "markers": {"m<1": 0.5},
    }
    for i in range(12)
    for j in range(4)
]


def parse(svg: str) -> list[ET.Element]:
    svg.encode("utf-8")
    return list(ET.fromstring(f"<all>{svg}</all>"))


def texts(svg: str) -> str:
    return " | ".join(t.text or "" for t in ET.fromstring(f"<all>{svg}</all>").iter(f"{NS}text"))


def test_pass_at_plots() -> None:
    whole, sliced = pass_at(ROWS), pass_at(ROWS, by="g")
    assert len(parse(whole.plot())) == 2
    assert "pass^4" in texts(whole.plot()) and "0.67 [" in texts(whole.plot())
    assert "<b>\\ud83d" in texts(sliced.plot()) and "calm & short" in texts(sliced.plot())
    assert "mean reward" not in texts(whole.plot())
    sliced._repr_html_().encode("utf-8")
    assert "<b>" not in sliced._repr_html_()


def test_plots_of_nothing_do_not_fail() -> None:
    assert parse(pass_at([]).plot())
    assert compare([], []).plot() == ""
    parse(differences_plot([], -1, 1, "none"))
    parse(interval_plot([], "none"))


def test_compare_plots() -> None:
    report = compare(ROWS, [{**r, "reward": 1.0} for r in ROWS])
    svg = report.plot()
    assert len(parse(svg)) == 2
    assert "12 tasks, sorted" in texts(svg) and "m<1" in texts(svg)
    bars = [e for e in ET.fromstring(f"<all>{svg}</all>").iter(f"{NS}rect") if e.get("fill-opacity") == "0.75"]
    assert len(bars) == 12


def test_bars_end_at_the_bounds() -> None:
    svg = interval_plot([("a", 0.5, 0.25, 0.75)], "x")
    bar = next(e for e in ET.fromstring(f"<all>{svg}</all>").iter(f"{NS}line") if e.get("stroke-width") == "5")
    axis = [float(t.get("x")) for t in ET.fromstring(f"<all>{svg}</all>").iter(f"{NS}text") if t.text in ("0", "1")]
    low, high = (float(bar.get(k)) for k in ("x1", "x2"))
    assert abs((low - axis[0]) / (axis[1] - axis[0]) - 0.25) < 0.002
    assert abs((high - axis[0]) / (axis[1] - axis[0]) - 0.75) < 0.002


def test_one_k_is_a_curve_too() -> None:
    assert "k=3" in texts(curve_plot([("pass@k", [(3, 0.5, 0.2, 0.8)])], "x"))
