# ruff: noqa: E501 - whole sentences in many scripts
"""Decontamination: the rules, the scripts, the boilerplate, the spans, files, and what was not checked."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_guard import decontaminate
from whileai_kernel.errors import ParameterError, RowError


def words(rng, n, start=0, size=4000):
    return [
        f"{rng.choice('bcdfglmnprst')}{rng.choice('aeiou')}{rng.choice('lmnrst')}{rng.randrange(start, start + size)}w"
        for _ in range(n)
    ]


def rules(report):
    return {hit.position: hit.rule for hit in (*report.hits, *report.templates)}


@pytest.mark.parametrize(
    ("train", "evals"),
    [
        ("Compute 17*3", "compute   17*3 "),
        ("\uff23ompute 17*3", "Compute 17*3"),
        ("Find  $ x $ with \\,x^2=9", "Find $x$ with x^2=9"),
        ("\ufb01nd the of\ufb01ce", "find the office"),
        ("zero\u200bwidth \u2060spaces", "zerowidth spaces"),
        ("It costs 1,000 dollars, doesn’t it?", "It costs 1000 dollars doesn't it"),
        ("Wie heißt die Straße?", "WIE HEISST DIE STRASSE"),
    ],
)
def test_respelled_copies_are_exact(train, evals):
    report = decontaminate([train], [evals])
    assert report.flagged == [0] and report.hits[0].rule == "exact" and report.rows == []


def test_other_numbers_are_a_template_and_not_flagged():
    report = decontaminate(["Compute 17*4"], ["Compute 17*3"])
    assert report.flagged == [] and report.rows == ["Compute 17*4"]
    assert [h.rule for h in report.templates] == ["template"]
    assert decontaminate(["Compute 17*4"], ["Compute 17*3"], drop=("template",)).rows == []


@pytest.mark.parametrize(("a", "b"), [("17-3", "17+3"), ("x = -3", "x = 3"), ("3.5 kg", "35 kg"), ("a+b", "a-b")])
def test_signs_and_points_are_part_of_the_answer(a, b):
    assert decontaminate([a], [b]).flagged == []


def test_a_paraphrase_is_out_of_reach_and_the_report_says_so():
    report = decontaminate(["What is the product of seventeen and three?"], ["Compute 17*3"])
    assert report.flagged == [] and any("paraphrases were not checked" in line for line in report.not_checked)


def test_nothing_to_compare_with_is_not_clean():
    report = decontaminate(["x"], [])
    assert report.clean is None and "no rule could run" in str(report)
    assert decontaminate([], ["x"]).clean is None
    assert decontaminate(["x"], [{"final_text": "no prompt"}]).clean is None
    assert decontaminate(["y"], ["x"]).clean is True


def test_ten_percent_changed_embedded_and_punctuated():
    rng = random.Random(3)
    evals = [" ".join(words(rng, 200)) for _ in range(40)]
    train = [" ".join(words(rng, 200)) for _ in range(200)]
    truth = {}
    for i, text in enumerate(evals[:30]):
        tokens = text.split()
        if i % 3 == 0:
            for at in rng.sample(range(200), 20):
                tokens[at] = f"changed{at}x"
            train.append(" ".join(tokens))
        elif i % 3 == 1:
            train.append(" ".join(words(rng, 300)) + " " + text + " " + " ".join(words(rng, 300)))
        else:
            train.append(", ".join(tokens).upper() + "!")
        truth[len(train) - 1] = "exact" if i % 3 == 2 else "near"
    report = decontaminate(train, evals)
    assert rules(report) == truth
    for hit in report.hits:
        assert hit.against == hit.position - 200


def test_half_changed_is_not_near():
    rng = random.Random(4)
    text = words(rng, 200)
    other = text[:100] + words(rng, 100, start=9000)
    assert decontaminate([" ".join(other)], [" ".join(text)]).flagged == []
    assert decontaminate([" ".join(other)], [" ".join(text)], share=0.45).flagged == [0]


def test_spans_point_into_the_texts_as_given():
    rng = random.Random(5)
    evals = "Überraschung! " + " ".join(words(rng, 40)) + " ﬁnal"
    train = "Vorher: " + " ".join(words(rng, 30)) + " — " + evals.upper() + " danach."
    hit = decontaminate([train], [evals]).hits[0]
    assert hit.rule == "near" and hit.coverage == 1.0
    for span in hit.spans:
        assert train[span.start : span.end] == span.text
        assert evals[span.against_start : span.against_end] == span.against_text
    assert hit.spans[0].against_text == evals
    assert hit.spans[0].text == evals.upper()


def test_numbers_and_names_swapped_in_a_long_text():
    a = "Janet keeps 16 ducks at home. On Mondays Janet sells 9 eggs to her neighbour Paul for 2 dollars each and keeps the rest for baking 4 cakes."
    b = "Maria keeps 25 ducks at home. On Mondays Maria sells 7 eggs to her neighbour Omar for 3 dollars each and keeps the rest for baking 6 cakes."
    report = decontaminate([b], [a])
    assert report.flagged == [] and rules(report) == {0: "template"}


def test_short_texts_inside_longer_ones():
    evals = ["What is the capital of Peru"]  # six words: below n, found whole
    long = "Please answer briefly. What is the capital of Peru? Then tell me why you think so."
    report = decontaminate([long, "What is the capital of Chile"], evals)
    assert rules(report) == {0: "short", 1: "template"}  # another country is another instance of the template
    assert report.hits[0].spans[0].text == "What is the capital of Peru"
    # Four words or fewer hit only as the whole text.
    report = decontaminate(["well, who are you then, my friend", "Who are you?"], ["who are you"])
    assert report.flagged == [1]
    assert any("compared whole only" in line for line in report.not_checked)


SCRIPTS = {
    "chinese": "小明在商店买了三本书每本书的价格是十五元他付给店员一百元请问店员应该找给他多少钱最后他还剩下多少钱可以用来买铅笔和橡皮",
    "japanese": "太郎さんは毎朝六時に起きて公園を三周走りますそのあと家に帰って朝ごはんを食べて学校へ行きます一週間で何周走りますか答えを数字で書いてください",
    "thai": "สมชายซื้อหนังสือสามเล่มในราคาเล่มละสิบห้าบาทแล้วจ่ายเงินหนึ่งร้อยบาทพนักงานต้องทอนเงินให้เขากี่บาทและเขาจะเหลือเงินเท่าไร",
    "cyrillic": "Маша купила в магазине три книги по пятнадцать рублей каждая и заплатила сто рублей, сколько сдачи должен дать ей продавец сегодня вечером",
    "arabic": "اشترى أحمد من المتجر ثلاثة كتب ثمن كل كتاب خمسة عشر درهما ودفع مئة درهم فكم درهما يجب أن يعيد له البائع في هذا اليوم",
    "greek": "Η Μαρία αγόρασε τρία βιβλία από το κατάστημα και κάθε βιβλίο κοστίζει δεκαπέντε ευρώ πόσα ρέστα πρέπει να πάρει από τον υπάλληλο σήμερα",
    "devanagari": "राम ने दुकान से तीन किताबें खरीदीं और हर किताब की कीमत पंद्रह रुपये है उसने सौ रुपये दिए तो दुकानदार उसे कितने रुपये वापस देगा",
    "hebrew": "דוד קנה בחנות שלושה ספרים ומחיר כל ספר הוא חמישה עשר שקלים והוא שילם מאה שקלים כמה עודף צריך המוכר להחזיר לו היום",
    "korean": "민수는 가게에서 책 세 권을 샀고 책 한 권의 값은 십오 원이며 백 원을 냈다면 점원은 민수에게 거스름돈으로 얼마를 돌려주어야 하는지 말해 보세요",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_works_like_latin(script):
    text = SCRIPTS[script]
    others = [t for name, t in SCRIPTS.items() if name != script]
    embedded = f"Vorab ein Satz. {text} Und danach noch einer."
    half = text[: len(text) // 2] + others[0]
    report = decontaminate([text, embedded, *others, half], [text])
    assert rules(report) == {0: "exact", 1: "near"}
    assert report.hits[1].spans[0].against_text.strip(".") == text


def test_dropping_vowel_signs_or_spaces_does_not_hide_a_copy():
    plain = SCRIPTS["arabic"]
    pointed = plain.replace("كتب", "كُتُبٍ").replace("درهم", "دِرْهَم")
    assert decontaminate([pointed], [plain]).flagged == [0]
    spaced = " ".join(SCRIPTS["chinese"])
    assert decontaminate([spaced], [SCRIPTS["chinese"]]).flagged == [0]


def test_shared_boilerplate_is_no_overlap():
    rng = random.Random(6)
    preamble = " ".join(words(rng, 120, start=50000))
    evals = [preamble + " " + " ".join(words(rng, 25)) for _ in range(50)]
    train = [preamble + " " + " ".join(words(rng, 25)) for _ in range(400)]
    report = decontaminate(train, evals)
    assert report.flagged == [] and report.templates == ()
    leaked = [*train, evals[7] + " and one more sentence behind it"]
    report = decontaminate(leaked, evals)
    assert [(h.position, h.against) for h in report.hits] == [(400, 7)]


def test_a_prompt_repeated_in_training_is_not_boilerplate():
    rng = random.Random(7)
    evals = [" ".join(words(rng, 60)) for _ in range(20)]
    train = [" ".join(words(rng, 60)) for _ in range(100)]
    for copy in range(64):
        train.append(evals[3] + " extra" if copy else evals[3])
    assert len(decontaminate(train, evals).flagged) == 64
    assert len(decontaminate(train, evals * 8).flagged) == 64


def test_code_is_compared_as_code():
    code = "def area(width, height):\n    total = width * height\n    if total > 100:\n        return total - 1\n    return total\n"
    fenced = f"Here is a function.\n```python\n{code}```\nWhat does it return for 3 and 4?"
    spaced = code.replace(" * ", "*").replace("    ", "\t")
    other = code.replace("*", "-").replace(">", "<").replace("width", "a").replace("height", "b").replace("total", "c")
    report = decontaminate([fenced, spaced, other], [code])
    assert sorted(report.flagged) == [0, 1]
    brackets = "def f(a):\n    return a[0] + a[1]\nx = f([1, 2])\n"
    calls = "def f(a):\n    return a(0) + a(1)\nx = f((1, 2))\n"
    assert decontaminate([calls], [brackets]).flagged == []


def test_task_ids_and_fields():
    train = [
        {"task_id": "t1", "rollout_id": "r1", "prompt": "alpha"},
        {"task_id": "t2", "rollout_id": "r2", "prompt": "beta", "messages": [
            {"role": "user", "content": "beta"},
            {"role": "assistant", "content": "The answer to the secret exam question is forty two indeed"},
        ]},
    ]  # fmt: skip
    evals = [
        {"task_id": "t1", "prompt": "gamma"},
        {"task_id": "t9", "prompt": "The answer to the secret exam question is forty two indeed"},
    ]
    report = decontaminate(train, evals)
    assert rules(report) == {0: "task"} and report.hits[0].rollout_id == "r1"
    report = decontaminate(train, evals, fields=("messages",), against_fields=("prompt",))
    assert rules(report) == {0: "task", 1: "exact"}
    assert report.hits[1].field == "messages[1].content" and report.hits[1].against_id == "t9"


def test_content_parts_and_chat_prompts_are_read():
    chat = [{"role": "user", "content": [{"type": "text", "text": "Where is the old lighthouse of the northern bay?"}]}]
    evals = ["where is the old lighthouse of the northern bay"]
    assert decontaminate([{"prompt": chat}], evals).flagged == [0]
    assert decontaminate([{"messages": chat}], evals, fields=("messages",), against_fields=("prompt",)).flagged == [0]


def test_a_common_greeting_is_no_exam():
    rng = random.Random(12)

    def chat(ask):
        return {"messages": [{"role": "user", "content": ask},
                             {"role": "assistant", "content": "Hello and welcome, how can I help you today?"}]}  # fmt: skip

    evals = [chat(" ".join(words(rng, 20))) for _ in range(5)]
    train = [chat(" ".join(words(rng, 20))) for _ in range(20)]
    assert decontaminate(train, evals, fields=("messages",)).flagged == []
    train.append(chat(evals[2]["messages"][0]["content"]))
    assert decontaminate(train, evals, fields=("messages",)).flagged == [20]


def test_files_give_the_same_report_as_lists(tmp_path):
    rng = random.Random(8)
    rows = [
        {"schema_version": 1, "task_id": f"t{i}", "rollout_id": f"r{i}", "index": 0, "prompt": " ".join(words(rng, 50)),
         "final_text": "x", "reward": 1.0, "status": "ok", "markers": {}}
        for i in range(60)
    ]  # fmt: skip
    evals = [rows[3]["prompt"].upper(), "pre " + rows[9]["prompt"]]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    from_list, from_file = decontaminate(rows, evals), decontaminate(path, evals)
    assert from_file.to_dict() == from_list.to_dict() and from_file.flagged == [3, 9]
    out = tmp_path / "clean.jsonl"
    assert from_file.write(out) == 58 == len(from_list.rows)
    assert {json.loads(line)["task_id"] for line in out.read_text(encoding="utf-8").splitlines()} == {
        r["task_id"] for r in from_list.rows
    }


def test_report_prints_and_shows_spans_side_by_side():
    report = decontaminate(["Say <b>17</b> times"], ["say <b>17</b>  times"])
    page = report.to_html()
    assert "&lt;b&gt;17&lt;/b&gt;" in page and "<b>17" not in page and "paraphrases were not checked" in page
    assert "left out" in str(report) and report._repr_html_() and json.dumps(report.to_dict())


def test_semantic_rule_with_a_given_embedder():
    topics = {"lamp": (1.0, 0.0), "light": (0.98, 0.2), "soup": (0.0, 1.0)}

    def embed(texts):
        return [topics[t.split()[-1]] for t in texts]

    report = decontaminate(["buy a light", "eat the soup"], ["sell my lamp"], embedder=embed)
    assert rules(report) == {0: "semantic"} and 0.97 < report.hits[0].coverage < 1
    assert not any("paraphrases" in line for line in report.not_checked)
    with pytest.raises(ParameterError):
        decontaminate(["buy a light"], ["sell my lamp"], embedder=3)


def test_arguments_are_checked():
    for bad in ({"n": 0}, {"share": 0.0}, {"share": 1.5}, {"drop": ("nearr",)}, {"fields": "prompt"}, {"fields": ()}):
        with pytest.raises(ParameterError):
            decontaminate(["a"], ["b"], **bad)
    with pytest.raises(RowError, match="row 1"):
        decontaminate(["a", 3], ["b"])
    with pytest.raises(ParameterError, match="no file"):
        decontaminate("missing.jsonl", ["b"])
    with pytest.raises(ParameterError):
        decontaminate({"prompt": "a"}, ["b"])


texts = st.lists(st.text(max_size=60), max_size=6)


@settings(max_examples=60, deadline=None)
@given(texts, texts)
def test_any_text_survives_and_copies_are_always_found(train, evals):
    report = decontaminate(train, evals)
    assert len(report.rows) + len(report.dropped) == len(train)
    for position, text in enumerate(train):
        if text.strip() and text in evals and any(ch.isalnum() for ch in text.encode("ascii", "ignore").decode()):
            assert position in report.flagged
    for hit in report.hits:
        for span in hit.spans:
            assert train[hit.position][span.start : span.end] == span.text
            assert evals[hit.against][span.against_start : span.against_end] == span.against_text


def test_order_and_blocks_do_not_matter():
    rng = random.Random(9)
    evals = [" ".join(words(rng, 80)) for _ in range(10)]
    train = [" ".join(words(rng, 80)) for _ in range(50)] + [f"{e} tail" for e in evals]
    straight = decontaminate(train, evals)
    turned = decontaminate(train[::-1], evals)
    assert sorted(len(train) - 1 - p for p in turned.flagged) == straight.flagged == list(range(50, 60))


@pytest.mark.parametrize("length", [20, 40])
def test_one_word_in_ten_changed_in_few_words_is_still_found(length):
    rng = random.Random(length)
    preamble = "Read the question twice, think step by step, and give only the final number as your answer."
    evals = [" ".join(words(rng, length)) for _ in range(200)]
    train = []
    for text in evals:
        tokens = text.split()
        for at in rng.sample(range(length), length // 10):
            tokens[at] = f"changed{at}x"
        train.append(f"{preamble} {' '.join(tokens)}")
    clean = [f"{preamble} {' '.join(words(rng, length))}" for _ in range(600)]
    report = decontaminate([*train, *clean], [f"{preamble} {text}" for text in evals])
    found = set(rules(report))
    assert len([p for p in found if p < 200]) >= 196 and not [p for p in found if p >= 200]


def test_one_changed_word_hides_no_neighbours():
    """Coverage by hand: 3 of 20 words differ, and none of the words between them is lost."""
    own = [f"word{i}x" for i in range(20)]
    other = [f"new{i}x" if i in (2, 9, 11) else w for i, w in enumerate(own)]
    report = decontaminate([" ".join(other)], [" ".join(own)])
    assert report.hits[0].rule == "near" and report.hits[0].coverage == pytest.approx(17 / 20)


def test_task_ids_are_compared_whether_or_not_rollouts_have_names(tmp_path):
    rows = [{"task_id": f"t{i}", "prompt": f"ask number {i} of many about nothing"} for i in range(3)]
    evals = [{"task_id": "t1", "prompt": "quite another text"}]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"schema_version": 1, **r}) + "\n" for r in rows), encoding="utf-8")
    for source in (rows, path):
        report = decontaminate(source, evals)
        assert rules(report) == {1: "task"} and report.hits[0].rollout_id == ""
        assert not any("task ids" in line for line in report.not_checked)
    named = [{**r, "rollout_id": f"r{i}"} for i, r in enumerate(rows)]
    assert decontaminate(named, evals).hits[0].rollout_id == "r1"
    assert any("task ids" in line for line in decontaminate([r["prompt"] for r in rows], evals).not_checked)
