"""Tokens of a mathematical answer, in LaTeX or plain text: one notation for both."""

from __future__ import annotations

import re

from whileai_verify.units import UNITS

__all__ = ["END", "FUNCTIONS", "GREEK", "RELATIONS", "CannotReadError", "Token", "clean", "tokenize", "ungroup"]


class CannotReadError(ValueError):
    """The text is not mathematics that this parser understands."""


_UNICODE = {
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∗": "*", "÷": "/", "√": r"\sqrt ",
    "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ",
    "∪": r"\cup ", "∈": r"\in ", "ℝ": r"\mathbb{R}", "∅": r"\emptyset ", "°": r"^{\circ}", "⁄": "/",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "μ": r"\mu ",
    "φ": r"\phi ", "ω": r"\omega ", "’": "'", "（": "(", "）": ")", "，": ",", "＝": "=", "⌊": r"\lfloor ",
    "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "⟨": r"\langle ", "⟩": r"\rangle ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "≈": r"\approx ",
}  # fmt: skip
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_DROP = re.compile(
    r"\\(?:left|right|[Bb]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|quad|qquad|hfill|thinspace|mathrm(?!\s*\{)"
    r"|rm|bf|it|mathstrut|phantom\{[^{}]*\})(?![A-Za-z])|\\[,;:! ]|(?<!\\)~|\\(?=\s)"
)
_NAMED = re.compile(
    r"\\(?:operatorname\*?|mathrm|mathbf|mathit|mathsf|mathcal|boldsymbol|bm|textbf|textit|textrm|emph|mbox|text)"
    r"\s*\{([^{}]*)\}"
)
FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "ln": "ln", "log": "log", "lg": "lg", "exp": "exp", "sqrt": "sqrt",
    "abs": "abs", "floor": "floor", "ceil": "ceil", "gcd": "gcd", "lcm": "lcm", "max": "max", "min": "min",
    "cbrt": "cbrt",
}  # fmt: skip
GREEK = [
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota",
    "kappa", "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
]  # fmt: skip
RELATIONS = {
    "=": "=", "<": "<", ">": ">", "\\le": "<=", "\\leq": "<=", "\\leqslant": "<=", "\\ge": ">=",
    "\\geq": ">=", "\\geqslant": ">=", "\\ne": "!=", "\\neq": "!=", "\\lt": "<", "\\gt": ">",
    "\\approx": "~", "\\equiv": "==", "<=": "<=", ">=": ">=", "!=": "!=", "==": "=",
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(?P<rep>\d+\.\d*(?:\\overline\s*\{\d+\}|\\bar\s*\{\d+\}|\\dot\s*\{\d\}|\(\d+\)(?!\d)))"
    r"|(?P<num>\d+(?:\.\d+)?(?:[eE][+-]?\d+(?![A-Za-z]))?|\.\d+|\d+\.(?!\d))"
    r"|(?P<text>\x01[^\x02]*\x02)|(?P<name>\x03[^\x04]*\x04)"
    r"|(?P<cmd>\\(?:[A-Za-z]+|[{}|%$&#_\\]))"
    r"|(?P<word>[A-Za-z]{2,})|(?P<let>[A-Za-z])"
    r"|(?P<op>\*\*|<=|>=|!=|==|\|\||[-+*/^_!()\[\]{}|=<>,;:%&'])|(?P<bad>\S))"
)


class Token(tuple):  # type: ignore[type-arg]
    """`(kind, text)`; a tuple with names."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """`num`, `rep`, `let`, `cmd`, `op`, `unit`, `join`, `words` or `end`."""
        return str(self[0])

    @property
    def text(self) -> str:
        """The text as written, or as replaced."""
        return str(self[1])


END = Token(("end", ""))


def clean(text: str) -> str:
    """Return a text in one notation: Unicode signs as commands, named operators marked, spacing removed."""
    for old, new in _UNICODE.items():
        if old in text:
            text = text.replace(old, new)
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+)", lambda m: "^{" + m.group().translate(_SUPER) + "}", text)
    text = re.sub(r"[０-９]", lambda m: chr(ord(m.group()) - 0xFEE0), text)
    text = re.sub(r"\\[dtc]frac(?![A-Za-z])", r"\\frac", text)
    text = text.replace("\\tfrac", "\\frac").replace("\\$", " USD ").replace("$", " ").replace("**", "^")
    text = re.sub(r"\\\(|\\\)|\\\[|\\\]", " ", text)
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|\\!,\\!|,\\!|\\ )(?=\d{3}(?!\d))", "", text)
    text = text.replace("\\%", "%").replace("\\colon", ":").replace("\\lbrace", "\\{").replace("\\rbrace", "\\}")
    text = re.sub(r"\\(?:left|right)\s*([.])", " ", text)
    text = _NAMED.sub(lambda m: f"\x01{m[1]}\x02", text)
    text = re.sub(r"\\mathbb\s*\{?\s*([A-Z])\s*\}?", r"\\bb\1 ", text)
    text = _plain_notation(_names(_DROP.sub(" ", text)))
    return re.sub(r"\s+", " ", text).strip()


_MARKED = re.compile(
    r"\\(vec|hat|widehat|bar|overline|overrightarrow|tilde)\s*(?:\{\s*([A-Za-z]{1,3})\s*\}|([A-Za-z])(?![A-Za-z]))"
    r"|\\(angle|triangle)\s*\{?\s*([A-Z]{1,4})(?![A-Za-z])\s*\}?"
)
_DERIVATIVE = re.compile(
    r"\\frac\s*\{\s*d(\^\s*\{?\d\}?)?\s*([A-Za-z])\s*\}\s*\{\s*d\s*([A-Za-z])\s*(\^\s*\{?\d\}?)?\s*\}|\bd([a-z])/d([a-z])\b"
)
_OPERATOR = re.compile(
    r"\\frac\s*\{\s*(?:d|\\partial)(?![A-Za-z\d])[^{}]*(?:\{[^{}]*\}[^{}]*)?\}\s*\{\s*(?:d|\\partial)\s*[A-Za-z](?:\^\s*\{?\d\}?)?\s*\}|\bd/d[a-z]\b"
)


def _names(text: str) -> str:
    r"""Mark what is one name though it is written with several signs: `\vec{v}`, `\overline{AB}`, `dy/dx`."""

    def named(m: re.Match[str]) -> str:
        return f"\x03{m[1] or m[4]} {m[2] or m[3] or m[5]}\x04"

    def derivative(m: re.Match[str]) -> str:
        order = re.sub(r"\D", "", m[1] or "")
        if order != re.sub(r"\D", "", m[4] or ""):
            raise CannotReadError("a derivative")
        return f"\x03d{order}{m[2] or m[5]}/d{m[3] or m[6]}{order}\x04"

    text = _DERIVATIVE.sub(derivative, _MARKED.sub(named, text))
    if _OPERATOR.search(text):
        raise CannotReadError("a derivative")
    return text


_ELLIPSIS = re.compile(r"(?<![\d.])(\d+\.\d*?)(\d{1,3}?)(\2+)\s*(?:\.\.\.|…|\\[lc]?dots(?![A-Za-z]))(?!\s*[\d,])")
_UNION = re.compile(r"([(\[][^()\[\]]*,[^()\[\]]*[)\]])\s*U\s*(?=[(\[][^()\[\]]*,)")
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}


def _plain_notation(text: str) -> str:
    """Rewrite what plain text writes in its own way: `log2(8)`, `3 x 10^5`, `(1,2) U (3,4)`, `0.333...`."""
    text = re.sub(r"\blog(2|10)\s*\(", r"log_{\1}(", text)
    text = re.sub(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r"\\times ", text)
    if "U" in text:
        text = _UNION.sub(r"\1\\cup ", _UNION.sub(r"\1\\cup ", text))
    text = re.sub(r"(\d\.\d*)\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?", r"\1(\2\3\4)", text)
    text = re.sub(r"(?<=\d)_\s*\{?\s*\x01(\w+)\x02\s*\}?", lambda m: f"_{{{_BASES.get(m[1], m[1])}}}", text)

    def repeats(m: re.Match[str]) -> str:
        return f"{m[1]}({m[2]})" if len(m[2]) + len(m[3]) >= 3 else m.group()

    return _ELLIPSIS.sub(repeats, text) if "..." in text or "…" in text or "dots" in text else text


def ungroup(text: str) -> str:
    """Remove thousands separators outside of every bracket: `1,000` is a number, `(1,000)` is a pair."""
    out, depth, last = [], 0, 0
    for m in re.finditer(r"\\[{}]|[()\[\]{}]|(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])", text):
        part = m.group()
        if part[0].isdigit():
            if depth == 0:
                out += [text[last : m.start()], part.replace(",", "")]
                last = m.end()
        else:
            depth += 1 if part[-1] in "([{" else -1
    return "".join(out) + text[last:]


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a cleaned text.

    Raises:
        CannotReadError: A character has no meaning here.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None or m.lastgroup is None:
            break
        at = m.end()
        kind, value = m.lastgroup, m[m.lastgroup]
        if kind == "bad":
            raise CannotReadError(f"the character {value!r}")
        if kind == "text":
            tokens += _text_tokens(value[1:-1])
        elif kind == "name":
            tokens.append(Token(("let", value[1:-1])))
        elif kind == "word":
            tokens += _word_tokens(value)
        else:
            tokens.append(Token((kind, value)))
    return tokens


def _text_tokens(inner: str) -> list[Token]:
    words = inner.strip().strip(".")
    low = words.casefold()
    if low in ("or", "and", "", ","):
        return [Token(("join", low))] if low in ("or", "and") else []
    if re.fullmatch(r"[-+\d.,/\s^()]+", words):
        return tokenize(ungroup(words))
    if low in FUNCTIONS:
        return [Token(("cmd", "\\" + low))]
    unit = re.sub(r"\s+", " ", low)
    if unit in UNITS:
        return [Token(("unit", unit))]
    if re.fullmatch(r"\(?[A-Za-z]\)?", words):
        return [Token(("let", words.strip("()")))]
    return [Token(("words", words))]


# Two letters are a product (xy), unless they are a word of prose.
_SHORT_WORDS = frozenset(
    (
        "is",
        "it",
        "to",
        "of",
        "in",
        "at",
        "on",
        "we",
        "so",
        "he",
        "if",
        "no",
        "do",
        "go",
        "my",
        "up",
        "us",
        "me",
        "am",
        "by",
    )
)


def _word_tokens(word: str) -> list[Token]:
    low = word.casefold()
    if low in ("or", "and"):
        return [Token(("join", low))]
    if low in FUNCTIONS or low == "pi" or word in GREEK:
        return [Token(("cmd", "\\" + (low if low in FUNCTIONS or low == "pi" else word)))]
    if low in ("inf", "infinity", "oo"):
        return [Token(("cmd", "\\infty"))]
    if low in UNITS and len(low) > 1:
        return [Token(("unit", low))]
    for name in sorted(FUNCTIONS, key=len, reverse=True):
        if word.endswith(name) and len(word) - len(name) == 1 and name not in ("ln", "lg"):
            return [Token(("let", word[0])), Token(("cmd", "\\" + name))]
    if word.endswith("pi") and len(word) == 3:
        return [Token(("let", word[0])), Token(("cmd", "\\pi"))]
    if len(word) == 2 and low not in _SHORT_WORDS:
        return [Token(("let", c)) for c in word]
    return [Token(("words", word))]
