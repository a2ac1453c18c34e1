r"""Read a mathematical answer, in LaTeX or plain text, into a small tree; refuse what is not understood.

The whole answer has to be consumed: nothing trails, nothing is guessed. Trees are plain tuples, so that they cross
process borders and need no algebra system:

* expressions: `("num", "1/3", digits)`, `("sym", name)`, `("add", a, b)`, `("mul", a, b)`, `("div", a, b)`,
  `("pow", a, b)`, `("neg", a)`, `("pm", a, b)`, `("fn", name, *args)`, `("const", name)`;
* answers: `("scalar", expr, unit, percent)`, `("list", items)`, `("set", items)`, `("seq", open, close, items)`,
  `("named", names, seq)`, `("union", parts)`, `("without", whole, part)`, `("meet", relations)`,
  `("rel", [expr, op, expr, ...])`, `("mod", a, b, modulus)`, `("matrix", rows)`, `("text", words)`.

`digits` is the number of decimals written, or `None` for an exact literal. What two trees mean is not decided here.

Example:
    >>> parse_answer(r"\frac{1}{2}")
    ('scalar', ('div', ('num', '1', None), ('num', '2', None)), '', False)
"""

from __future__ import annotations

import re
from typing import Any

from whileai_verify.extract import strip_decoration
from whileai_verify.mathexpr import expression
from whileai_verify.mathtokens import RELATIONS, CannotReadError, Token, clean, tokenize, ungroup
from whileai_verify.units import UNITS

__all__ = ["CannotReadError", "parse_answer"]

Tree = tuple[Any, ...]


_OPEN = {"(", "[", "{", "\\{", "\\langle", "\\lfloor", "\\lceil"}
_CLOSE = {")", "]", "}", "\\}", "\\rangle", "\\rfloor", "\\rceil"}


def _split(tokens: list[Token], where: Any) -> list[list[Token]]:
    """Split tokens at those outside of every bracket for which `where(token)` holds."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind in ("op", "cmd"):
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0 and where(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _balanced(tokens: list[Token]) -> bool:
    depth = 0
    for token in tokens:
        if token.kind in ("op", "cmd"):
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            if depth < 0:
                return False
    return depth == 0


def _enclosed(tokens: list[Token]) -> bool:
    """Return whether the first bracket closes at the last token."""
    if len(tokens) < 2 or tokens[0].text not in _OPEN or tokens[-1].text not in _CLOSE:
        return False
    return _balanced(tokens[1:-1])


def parse_answer(text: str) -> Tree:
    """Read an answer.

    Args:
        text: A short text in LaTeX or plain notation.

    Raises:
        CannotReadError: It is not understood as a whole.
    """
    plain = re.sub(r"(?:\s*\\\\)+\s*$", "", _ANNOUNCED.sub("", strip_decoration(text)))
    matrix = _matrix(plain)
    if matrix is not None:
        return matrix
    congruence = _MOD.fullmatch(plain)
    if congruence:
        sides = [expression(tokenize(clean(congruence[n]))) for n in (1, 2, 3)]
        return ("mod", *sides)
    cleaned = re.sub(r"(?<=[^.])\.$", "", ungroup(clean(plain)))
    words = _as_words(plain)
    if words in _NO_SOLUTION:
        return ("set", [])
    if words in _EVERY_NUMBER:
        return _REALS
    try:
        tokens = tokenize(cleaned)
    except CannotReadError:
        if words:
            return ("text", words)
        raise
    if not tokens:
        raise CannotReadError("nothing")
    if words and any(t.kind == "words" for t in tokens):
        return ("text", words)
    return _answer(tokens)


_ANNOUNCED = re.compile(
    r"^\s*\\(?:text|textbf|mathrm)\s*\{\s*(?:the\s)?(?:final\s)?answer(?:\sis)?\s*:?\s*\}\s*[:=]?\s*(?=\S)", re.I
)
_REALS = ("seq", "(", ")", [("scalar", ("neg", ("const", "oo")), "", False), ("scalar", ("const", "oo"), "", False)])
_NO_SOLUTION = ("no solution", "no solutions", "there is no solution", "empty set", "the empty set")
_EVERY_NUMBER = ("all real numbers", "all reals", "every real number", "any real number")
_MOD = re.compile(
    r"\s*\$?([^=$]+?)(?:\\equiv|≡)([^=$]+?)(?:\\pmod|\\bmod|\\mod|\(\s*(?:\\(?:text|mathrm)\{\s*mod\s*\}|\\bmod|\\mod|mod)|\\mod)"
    r"\s*\{?\s*(\w+)\s*\}?\s*\)?\s*\$?\s*"
)


def _as_words(text: str) -> str:
    """Return a text of letters and spaces in comparable form, `""` when it is anything else."""
    bare = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}", r"\1", text).strip().strip(".")
    return " ".join(bare.casefold().split()) if re.fullmatch(r"[A-Za-z][A-Za-z' \-]*", bare) else ""


_MATRIX = re.compile(
    r"(?P<before>[^&]*?)\\begin\{(?P<kind>[pbBvV]?(?:small)?matrix|array)\}(?:\{[^{}]*\})?(?P<rows>.*)"
    r"\\end\{(?P=kind)\}\s*",
    re.S,
)


def _matrix(text: str) -> Tree | None:
    """Read a matrix, one with a factor or a name before it (`\\frac12 M`, `A = M`), or a determinant of numbers."""
    if "\\begin" not in text:
        return None
    text = re.sub(r"\\(?:left|right)\s*(?:\\?[()\[\]|.{}])?", "", text).replace("$", " ")
    m = _MATRIX.fullmatch(text)
    if m is None:
        return None
    if "\\begin" in m["rows"]:
        raise CannotReadError("a matrix inside a matrix")
    rows = [r for r in re.split(r"\\\\(?:\[[^\]]*\])?", m["rows"]) if r.strip()]
    cells = [[expression(tokenize(clean(c))) for c in r.split("&")] for r in rows]
    if not cells or len({len(r) for r in cells}) != 1:
        raise CannotReadError("a matrix whose rows differ in length")
    before = re.sub(r"^\s*\\?[A-Za-z]+(?:\^\{?-?\w\}?)?\s*=", "", m["before"]).strip()
    factor = None
    if before:
        factor = ("neg", ("num", "1", None)) if before == "-" else expression(tokenize(clean(before)))
    if m["kind"][0] in "vV":
        if len(cells) != len(cells[0]):
            raise CannotReadError("a determinant that is not square")
        tree: Tree = ("fn", "det", *[("row", *r) for r in cells])
        return ("scalar", tree if factor is None else ("mul", factor, tree), "", False)
    return ("matrix", cells if factor is None else [[("mul", factor, c) for c in r] for r in cells])


def _answer(tokens: list[Token]) -> Tree:
    if not _balanced(tokens):
        raise CannotReadError("brackets that do not match")
    joins = [t.text for t in _joins(tokens)]
    if joins:
        return _joined(_split(tokens, _is_join), all(j in _AND for j in joins))
    if tokens[0].kind == "let" and len(tokens) > 2 and tokens[1].text == "\\in":
        return _answer(tokens[2:])
    union = _split(tokens, lambda t: t.text == "\\cup")
    if len(union) > 1:
        return ("union", [_answer(p) for p in union])
    without = _split(tokens, lambda t: t.text in ("\\setminus", "\\backslash"))
    if len(without) == 1 and tokens[0].text == "\\bbR" and len(tokens) > 1 and tokens[1].text == "-":
        without = [tokens[:1], tokens[2:]]
    if len(without) == 2 and all(without):
        return ("without", _answer(without[0]), _answer(without[1]))
    ratio = _split(tokens, lambda t: t.text == ":")
    if len(ratio) > 1 and all(ratio):
        return ("seq", ":", ":", [_answer(p) for p in ratio])
    commas = _split(tokens, lambda t: t.text == ",")
    if len(commas) > 1:
        return ("list", _spread([_answer(p) for p in commas if p]))
    return _single(tokens)


_AND = ("and", "\\land", "\\wedge")
_JOINS = ("\\lor", "\\vee", "\\land", "\\wedge", ";")


def _is_join(token: Token) -> bool:
    return token.kind == "join" or token.text in _JOINS


def _joins(tokens: list[Token]) -> list[Token]:
    """Return the joining tokens outside of every bracket."""
    found, depth = [], 0
    for token in tokens:
        if token.kind in ("op", "cmd"):
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0 and _is_join(token):
            found.append(token)
    return found


def _joined(parts: list[list[Token]], every_and: bool) -> Tree:
    """Return the items of `1 or 2`; inequalities that "and" joins are a `meet`: all of them hold."""
    items = [_answer(_trim(p)) for p in parts if _trim(p)]
    flat: list[Tree] = []
    for item in items:
        flat += item[1] if item[0] == "list" else [item]
    if len(flat) < 2:
        raise CannotReadError("a dangling 'or'")
    if every_and and all(i[0] == "rel" for i in flat) and any(i[1][1] not in ("=", "==") for i in flat):
        return ("meet", flat)
    return ("list", _spread(flat))


def _trim(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[0].text == ",":
        tokens = tokens[1:]
    while tokens and tokens[-1].text == ",":
        tokens = tokens[:-1]
    return tokens


def _spread(items: list[Tree]) -> list[Tree]:
    """`n = 2, 3, 4` names every item."""
    first = items[0]
    if first[0] == "rel" and len(first[1]) == 3 and first[1][1] == "=" and all(i[0] == "scalar" for i in items[1:]):
        return [first, *[("rel", [first[1][0], "=", i[1]]) for i in items[1:]]]
    return items


def _single(tokens: list[Token]) -> Tree:
    """Read one item: a set, a bracketed sequence, a relation, or an expression."""
    if _enclosed(tokens):
        left, inner, right = tokens[0].text, tokens[1:-1], tokens[-1].text
        commas = _split(inner, lambda t: t.text == ",")
        if left == "\\{" or (left == "{" and (len(commas) > 1 or not inner)):
            return _set(inner, commas)
        if left == "{":
            return _answer(inner)
        if left in ("(", "[", "\\langle") and right in (")", "]", "\\rangle"):
            if len(commas) > 1:
                left, right = ("(", ")") if left == "\\langle" else (left, right)
                return ("seq", left, right, [_answer(p) for p in commas])
            if left == "(" and right == ")" and any(t.text in RELATIONS for t in inner):
                return _answer(inner)
            if left == "[" and _enclosed(inner) is False:
                return ("seq", left, right, [_answer(inner)])
    if len(tokens) == 1 and tokens[0].text in ("\\emptyset", "\\varnothing"):
        return ("set", [])
    if len(tokens) == 1 and tokens[0].text == "\\bbR":
        return _REALS
    sides = _relation(tokens)
    if sides is not None:
        return sides
    return _scalar(tokens)


def _set(inner: list[Token], commas: list[list[Token]]) -> Tree:
    bar = _split(inner, lambda t: t.text in ("|", "\\mid", ":"))
    if len(bar) == 2 and any(t.text in RELATIONS for t in bar[1]):
        texts = [t.text for t in bar[0]]
        if bar[0] and bar[0][0].kind == "let" and texts[1:] in ([], ["\\in", "\\bbR"]):
            return _answer(bar[1])
        raise CannotReadError("a set with a condition")
    return ("set", [_answer(p) for p in commas if p])


def _relation(tokens: list[Token]) -> Tree | None:
    depth, start = 0, 0
    chain: list[Any] = []
    for n, token in enumerate(tokens):
        if token.kind in ("op", "cmd"):
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0 and token.text in RELATIONS and token.kind in ("op", "cmd"):
            chain += [tokens[start:n], RELATIONS[token.text]]
            start = n + 1
    if not chain:
        return None
    chain.append(tokens[start:])
    chain = _without_approximations(chain)
    if len(chain) == 1:
        return _answer(chain[0])
    named = _named_tuple(chain) or _named_collection(chain)
    if named is not None:
        return named
    if chain[0] == []:
        if chain[1] != "=":
            raise CannotReadError("a relation without a left side")
        chain = chain[2:]
        if len(chain) == 1:
            return _scalar(chain[0])
    sides: list[Any] = []
    for n, side in enumerate(chain):
        if n % 2:
            sides.append(side)
        elif n == 0 and _applied(side):
            sides.append(("sym", _applied(side)))
        else:
            sides.append(_scalar(side)[1])
    return ("rel", sides)


def _named_tuple(chain: list[Any]) -> Tree | None:
    """Return `(x, y) = (1, 2)` as names with a tuple, or `None`."""
    if len(chain) != 3 or chain[1] != "=" or not (_enclosed(chain[0]) and _enclosed(chain[2])):
        return None
    names = _split(chain[0][1:-1], lambda t: t.text == ",")
    values = _split(chain[2][1:-1], lambda t: t.text == ",")
    if len(names) < 2 or len(names) != len(values) or chain[0][0].text != "(" or chain[2][0].text != "(":
        return None
    symbols = [expression(n) for n in names]
    if any(s[0] != "sym" for s in symbols) or len(set(symbols)) != len(symbols):
        return None
    return ("named", symbols, ("seq", "(", ")", [_answer(v) for v in values]))


def _named_collection(chain: list[Any]) -> Tree | None:
    r"""Return the collection of `S = \{1, 2\}` or `D = [0, 1)`, or `None` for a relation of expressions."""
    if len(chain) != 3 or chain[1] != "=" or len(chain[0]) != 1 or chain[0][0].kind != "let":
        return None
    if not any(t.text in (",", "\\cup", "\\setminus", "\\emptyset", "\\varnothing", "\\{") for t in chain[2]):
        return None
    right = _answer(chain[2])
    return right if right[0] in ("seq", "set", "union", "without") else None


def _without_approximations(chain: list[Any]) -> list[Any]:
    """Cut a chain before its approximations, unless a name alone stands before them: `x \\approx 4.24`."""
    for at in range(1, len(chain), 2):
        if chain[at] != "~":
            continue
        if at == 1 and len(chain[0]) <= 1 and not (chain[0] and chain[0][0].kind in ("num", "rep")):
            chain = [*chain[:at], "=", *chain[at + 1 :]]
            continue
        return chain[:at]
    return chain


def _applied(tokens: list[Token]) -> str:
    """Return `f(x)` for the left side of a definition, `""` otherwise."""
    texts = [t.text for t in tokens]
    inverse = "^-1" if texts[1:6] == ["^", "{", "-", "1", "}"] else ""
    at = 6 if inverse else 1
    if len(tokens) >= at + 3 and tokens[0].kind == "let" and texts[at] == "(" and texts[-1] == ")":
        inner = tokens[at + 1 : -1]
        if all(t.kind == "let" or t.text == "," for t in inner):
            return texts[0] + inverse + "(" + "".join(t.text for t in inner) + ")"
    return ""


_ANGULAR = frozenset(("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc"))


def _scalar(tokens: list[Token]) -> Tree:
    unit, percent = "", False
    if tokens and tokens[0].kind == "unit" and len(tokens) > 1:
        unit, tokens = tokens[0].text, tokens[1:]
    tail = _unit_tail(tokens)
    if tail is not None and not unit:
        unit, tokens = tail
    if tokens and tokens[-1].text == "%":
        percent, tokens = True, tokens[:-1]
    tree = expression(tokens)
    if not unit and any(t.text == "\\circ" for t in tokens) and not any(t.text in _ANGULAR for t in tokens):
        tree, unit = ("div", ("mul", tree, ("num", "180", None)), ("const", "pi")), "degree"  # a sum of angles
    return ("scalar", tree, unit, percent)


def _unit_tail(tokens: list[Token]) -> tuple[str, list[Token]] | None:
    """Return the unit at the end (`5 cm`, `5 cm^2`, `5 km/h`, `90^\\circ`) and the tokens before it."""
    texts = [t.text for t in tokens]
    scale = {"C": "celsius", "F": "fahrenheit"}.get(texts[-1] if texts else "", "")
    ends = 1 if scale else 0
    for pattern in (["^", "{", "\\circ", "}"], ["^", "\\circ"]):
        size = len(pattern)
        if len(tokens) > size + ends and texts[len(texts) - size - ends : len(texts) - ends] == pattern:
            rest = tokens[: -size - ends]
            if not any(t.text in _ANGULAR or t.text == "\\circ" for t in rest):
                return scale or "degree", rest
    if len(texts) > 1 and texts[-1] == "\\min":
        return "minute", tokens[:-1]
    first = next((n for n, t in enumerate(tokens) if t.kind == "unit"), None)
    if first is None or first == 0:
        return None
    if texts[first - 2 : first] == ["\\frac", "{"] and first > 2:
        first -= 2
        unit = re.sub(r"^\\frac\{([^{}]*)\}\{([^{}]*)\}$", r"\1/\2", "".join(texts[first:]))
    else:
        unit = "".join("per" if t == "/" else t for t in texts[first:] if t not in "{}").replace("per", "/")
    if unit in UNITS or re.fullmatch(r"[a-z ]+(?:\^-?[1-4])?(?:/[a-z]+(?:\^[1-4])?)?", unit):
        return unit, tokens[:first]
    raise CannotReadError("an unknown unit")
