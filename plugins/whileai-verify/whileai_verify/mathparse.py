r"""Read a mathematical answer, in LaTeX or plain text, into a small tree; refuse what is not understood.

The whole answer has to be consumed: nothing trails, nothing is guessed. Trees are plain tuples, so that they cross
process borders and need no algebra system:

* expressions: `("num", "1/3", digits)`, `("sym", name)`, `("add", a, b)`, `("mul", a, b)`, `("div", a, b)`,
  `("pow", a, b)`, `("neg", a)`, `("pm", a, b)`, `("fn", name, *args)`, `("const", name)`;
* answers: `("scalar", expr, unit, percent)`, `("list", items)`, `("set", items)`, `("seq", open, close, items)`,
  `("union", parts)`, `("rel", [expr, op, expr, ...])`, `("matrix", rows)`, `("text", words)`.

`digits` is the number of decimals written, or `None` for an exact literal. What two trees mean is not decided here.

Example:
    >>> parse_answer(r"\frac{1}{2}")
    ('scalar', ('div', ('num', '1', None), ('num', '2', None)), '', False)
"""

from __future__ import annotations

import re
from typing import Any

from whileai_verify.extract import strip_decoration
from whileai_verify.mathtokens import (
    END,
    FUNCTIONS,
    GREEK,
    RELATIONS,
    CannotReadError,
    Token,
    clean,
    tokenize,
    ungroup,
)
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
    plain = strip_decoration(text)
    matrix = _matrix(plain)
    if matrix is not None:
        return matrix
    cleaned = re.sub(r"(?<=[^.])\.$", "", ungroup(clean(plain)))
    words = _as_words(plain)
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


def _as_words(text: str) -> str:
    """Return a text of letters and spaces in comparable form, `""` when it is anything else."""
    bare = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}", r"\1", text).strip().strip(".")
    return " ".join(bare.casefold().split()) if re.fullmatch(r"[A-Za-z][A-Za-z' \-]*", bare) else ""


_MATRIX = re.compile(r"\s*\\begin\{([pbBvV]?matrix|array)\}(?:\{[^{}]*\})?(.*)\\end\{\1\}\s*", re.S)


def _matrix(text: str) -> Tree | None:
    text = re.sub(r"\\(?:left|right)\s*(?:\\?[()\[\]|.{}])?", "", text) if "\\begin" in text else text
    m = _MATRIX.fullmatch(text.replace("$", " "))
    if m is None:
        return None
    if m[1] in ("vmatrix", "Vmatrix"):
        raise CannotReadError("a determinant")
    if "\\begin" in m[2]:
        raise CannotReadError("a matrix inside a matrix")
    rows = [r for r in re.split(r"\\\\(?:\[[^\]]*\])?", m[2]) if r.strip()]
    cells = [[_expression(tokenize(clean(c))) for c in r.split("&")] for r in rows]
    if not cells or len({len(r) for r in cells}) != 1:
        raise CannotReadError("a matrix whose rows differ in length")
    return ("matrix", cells)


def _answer(tokens: list[Token]) -> Tree:
    if not _balanced(tokens):
        raise CannotReadError("brackets that do not match")
    parts = _split(tokens, lambda t: t.kind == "join" or t.text in ("\\lor", "\\vee", ";"))
    if len(parts) > 1:
        items = [_answer(_trim(p)) for p in parts if _trim(p)]
        flat: list[Tree] = []
        for item in items:
            flat += item[1] if item[0] == "list" else [item]
        if len(flat) < 2:
            raise CannotReadError("a dangling 'or'")
        return ("list", _spread(flat))
    if tokens[0].kind == "let" and len(tokens) > 2 and tokens[1].text == "\\in":
        return _answer(tokens[2:])
    union = _split(tokens, lambda t: t.text == "\\cup")
    if len(union) > 1:
        return ("union", [_answer(p) for p in union])
    ratio = _split(tokens, lambda t: t.text == ":")
    if len(ratio) > 1 and all(ratio):
        return ("seq", ":", ":", [_answer(p) for p in ratio])
    commas = _split(tokens, lambda t: t.text == ",")
    if len(commas) > 1:
        return ("list", _spread([_answer(p) for p in commas if p]))
    return _single(tokens)


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
        return (
            "seq",
            "(",
            ")",
            [("scalar", ("neg", ("const", "oo")), "", False), ("scalar", ("const", "oo"), "", False)],
        )
    sides = _relation(tokens)
    if sides is not None:
        return sides
    return _scalar(tokens)


def _set(inner: list[Token], commas: list[list[Token]]) -> Tree:
    bar = _split(inner, lambda t: t.text in ("|", "\\mid", ":"))
    if len(bar) == 2 and any(t.text in RELATIONS for t in bar[1]):
        return _answer(bar[1])
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
    if len(tokens) >= 4 and tokens[0].kind == "let" and tokens[1].text == "(" and tokens[-1].text == ")":
        inner = tokens[2:-1]
        if all(t.kind == "let" or t.text == "," for t in inner):
            return tokens[0].text + "(" + "".join(t.text for t in inner) + ")"
    return ""


def _scalar(tokens: list[Token]) -> Tree:
    unit, percent = "", False
    if tokens and tokens[0].kind == "unit" and len(tokens) > 1:
        unit, tokens = tokens[0].text, tokens[1:]
    tail = _unit_tail(tokens)
    if tail is not None and not unit:
        unit, tokens = tail
    if tokens and tokens[-1].text == "%":
        percent, tokens = True, tokens[:-1]
    return ("scalar", _expression(tokens), unit, percent)


def _unit_tail(tokens: list[Token]) -> tuple[str, list[Token]] | None:
    """Return the unit at the end (`5 cm`, `5 cm^2`, `5 km/h`, `90^\\circ`) and the tokens before it."""
    texts = [t.text for t in tokens]
    for size, pattern in ((4, ["^", "{", "\\circ", "}"]), (2, ["^", "\\circ"])):
        if len(tokens) > size and texts[-size:] == pattern:
            return "degree", tokens[:-size]
    first = next((n for n, t in enumerate(tokens) if t.kind == "unit"), None)
    if first is None or first == 0:
        return None
    unit = "".join("per" if t == "/" else t for t in texts[first:] if t not in "{}").replace("per", "/")
    if unit in UNITS or re.fullmatch(r"[a-z ]+(?:\^-?[1-4])?(?:/[a-z]+(?:\^[1-4])?)?", unit):
        return unit, tokens[:first]
    raise CannotReadError("an unknown unit")


def _expression(tokens: list[Token]) -> Tree:
    parser = _Parser(tokens)
    tree = parser.sum()
    if parser.peek() is not END:
        raise CannotReadError(f"{parser.peek().text!r} after the expression")
    return tree


_MAX_DEPTH = 60


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else END

    def take(self, text: str | None = None) -> Token:
        token = self.peek()
        if token is END or (text is not None and token.text != text):
            raise CannotReadError(f"{token.text!r} where {text or 'something'!r} should stand")
        self.at += 1
        return token

    def sum(self) -> Tree:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CannotReadError("nested too deeply")
        token = self.peek()
        if token.text in ("\\pm", "\\mp"):
            self.take()
            tree: Tree = ("pm", ("num", "0", None), self.product(), token.text == "\\pm")
        else:
            tree = self.product()
        while self.peek().text in ("+", "-", "\\pm", "\\mp"):
            op = self.take().text
            right = self.product()
            if op in ("\\pm", "\\mp"):
                tree = ("pm", tree, right, op == "\\pm")
            else:
                tree = ("add", tree, right if op == "+" else ("neg", right))
        self.depth -= 1
        return tree

    def product(self) -> Tree:
        tree = self.unary()
        while True:
            token = self.peek()
            if token.text in ("*", "\\cdot", "\\times", "\\ast"):
                self.take()
                tree = ("mul", tree, self.unary())
            elif token.text in ("/", "\\div"):
                self.take()
                tree = ("div", tree, self.unary())
            elif self.starts(token):
                if token.kind in ("num", "rep") and self.tokens[self.at - 1].kind in ("num", "rep"):
                    raise CannotReadError("two numbers side by side")
                tree = ("mul", tree, self.power())
            else:
                return tree

    def starts(self, token: Token) -> bool:
        """Return whether a token can begin a factor of an implicit product."""
        if token.kind in ("num", "rep", "let"):
            return True
        if token.kind == "cmd":
            name = token.text[1:]
            return name in FUNCTIONS or name in GREEK or name in (
                "frac", "binom", "dbinom", "tbinom", "pi", "infty", "imath", "lfloor", "lceil", "vert", "lvert"
            )  # fmt: skip
        return token.text in ("(", "{", "[")

    def unary(self) -> Tree:
        if self.peek().text in ("-", "+"):
            minus = self.take().text == "-"
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise CannotReadError("nested too deeply")
            tree = self.unary()
            self.depth -= 1
            return ("neg", tree) if minus else tree
        return self.power()

    def power(self) -> Tree:
        base = self.postfix()
        if self.peek().text == "^":
            self.take()
            exponent = self.script()
            base = ("pow", base, exponent)
            if self.peek().text == "!":
                self.take()
                base = ("fn", "factorial", base)
            if self.peek().text == "^":
                raise CannotReadError("two exponents")
        return base

    def script(self) -> Tree:
        """Read what follows `^` or `_`: a group, or one token (`2^10` in plain text takes the whole number)."""
        token = self.peek()
        if token.text == "{":
            return self.group("{", "}")
        if token.text == "-":
            self.take()
            return ("neg", self.script())
        tree = self.postfix()
        if self.peek().text == "^":
            self.take()
            tree = ("pow", tree, self.script())
        return tree

    def group(self, left: str, right: str) -> Tree:
        self.take(left)
        tree = self.sum()
        self.take(right)
        return tree

    def postfix(self) -> Tree:
        tree = self.primary()
        while self.peek().text == "!":
            self.take()
            tree = ("fn", "factorial", tree)
        return tree

    def primary(self) -> Tree:
        token = self.peek()
        if token.kind in ("num", "rep"):
            return self.number()
        if token.kind == "let":
            return self.symbol()
        if token.text in ("(", "[", "{"):
            close = {"(": ")", "[": "]", "{": "}"}[token.text]
            return self.group(token.text, close)
        if token.text in ("|", "\\vert", "\\lvert", "\\|"):
            self.take()
            tree = self.sum()
            if self.peek().text not in ("|", "\\vert", "\\rvert", "\\|"):
                raise CannotReadError("an open bar")
            self.take()
            return ("fn", "abs", tree)
        if token.text in ("\\lfloor", "\\lceil"):
            close = "\\r" + token.text[2:]
            return ("fn", "floor" if token.text == "\\lfloor" else "ceil", self.group(token.text, close))
        if token.kind == "cmd":
            return self.command()
        raise CannotReadError(f"{token.text!r}")

    def number(self) -> Tree:
        token = self.take()
        if token.kind == "rep":
            return ("num", _repeating(token.text), None)
        if self.peek().text == "_":
            self.take()
            base = self.script()
            if base[0] != "num" or "." in token.text or not base[1].isdigit() or not 2 <= int(base[1]) <= 36:
                raise CannotReadError("a number with a subscript")
            try:
                return ("num", str(int(token.text, int(base[1]))), None)
            except ValueError:
                raise CannotReadError("a digit outside of its base") from None
        mixed = self.mixed(token)
        if mixed is not None:
            return mixed
        return ("num", token.text.rstrip("."), _decimals(token.text))

    def mixed(self, token: Token) -> Tree | None:
        """Return a mixed number: digits before `\\frac{1}{2}`, or `1 1/2`, with a proper fraction of digits."""
        if not token.text.isdigit():
            return None
        nxt = [self.peek(n) for n in range(7)]
        texts = [t.text for t in nxt]
        top = bottom = ""
        if texts[0] == "\\frac" and texts[1] == "{" and texts[3] == "}" and texts[4] == "{" and texts[6] == "}":
            top, bottom, used = texts[2], texts[5], 7
        elif texts[0] == "\\frac" and re.fullmatch(r"\d\d", texts[1]):
            top, bottom, used = texts[1][0], texts[1][1], 2
        elif nxt[0].kind == "num" and texts[1] == "/" and nxt[2].kind == "num":
            top, bottom, used = texts[0], texts[2], 3
        if not (top.isdigit() and bottom.isdigit()) or not int(top) < int(bottom):
            return None
        self.at += used
        return ("add", ("num", token.text, None), ("div", ("num", top, None), ("num", bottom, None)))

    def symbol(self) -> Tree:
        name = self.take().text
        if name == "e":
            return ("const", "e")
        if name == "i":
            return ("const", "i")
        return ("sym", name + self.subscript())

    def subscript(self) -> str:
        mark = ""
        if self.peek().text == "_":
            self.take()
            if self.peek().text == "{":
                self.take()
                while self.peek().text not in ("}", ""):
                    mark += self.take().text
                self.take("}")
            else:
                mark = self.take().text
            mark = "_" + mark
        while self.peek().text == "'":
            mark += self.take().text
        return mark

    def command(self) -> Tree:
        name = self.take().text[1:]
        if name == "frac":
            return ("div", self.argument(), self.argument())
        if name in ("binom", "dbinom", "tbinom"):
            return ("fn", "binomial", self.argument(), self.argument())
        if name == "pi":
            return ("const", "pi")
        if name == "infty":
            return ("const", "oo")
        if name == "imath":
            return ("const", "i")
        if name in GREEK:
            return ("sym", name + self.subscript())
        if name == "sqrt":
            return self.root()
        if name in FUNCTIONS:
            return self.function(FUNCTIONS[name])
        raise CannotReadError(f"the command \\{name}")

    def argument(self) -> Tree:
        """Read one argument of a LaTeX command: a group, or a single digit or letter."""
        token = self.peek()
        if token.text == "{":
            return self.group("{", "}")
        if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
            self.tokens = [
                *self.tokens[: self.at],
                *[Token(("num", c)) for c in token.text],
                *self.tokens[self.at + 1 :],
            ]
        if self.peek().kind == "num":
            return ("num", self.take().text, None)
        return self.primary()

    def root(self) -> Tree:
        degree: Tree | None = None
        if self.peek().text == "[":
            degree = self.group("[", "]")
        inner = self.argument() if self.peek().text != "(" else self.group("(", ")")
        return ("fn", "root", inner, degree or ("num", "2", None))

    def function(self, name: str) -> Tree:
        base: Tree | None = None
        exponent: Tree | None = None
        for _ in range(2):
            if self.peek().text == "_" and name == "log" and base is None:
                self.take()
                base = self.argument() if self.peek().text == "{" or self.peek().kind == "num" else self.postfix()
            elif self.peek().text == "^" and exponent is None:
                self.take()
                exponent = self.script()
        args = self.call()
        if exponent == ("neg", ("num", "1", None)):
            if name not in ("sin", "cos", "tan"):
                raise CannotReadError("an inverse of that function")
            return ("fn", "a" + name, *args)
        tree: Tree = ("fn", name, *args, *([base] if base is not None else []))
        if name == "log" and base is not None:
            tree = ("fn", "logb", args[0], base)
        return tree if exponent is None else ("pow", tree, exponent)

    def call(self) -> list[Tree]:
        """Read the argument of a function: brackets, or the factors that follow without an operator."""
        if self.peek().text == "(":
            self.take()
            args = [self.sum()]
            while self.peek().text == ",":
                self.take()
                args.append(self.sum())
            self.take(")")
            return args
        if self.peek().text == "-":
            self.take()
            return [("neg", self.power())]
        tree = self.power()
        while self.starts(self.peek()) and self.peek().text[1:] not in FUNCTIONS:
            tree = ("mul", tree, self.power())
        return [tree]


def _decimals(text: str) -> int | None:
    if "." not in text and "e" not in text.lower():
        return None
    head, _, exponent = text.lower().partition("e")
    return max(0, len(head.partition(".")[2]) - int(exponent or 0))


def _repeating(text: str) -> str:
    m = re.fullmatch(r"(\d+)\.(\d*)(?:\\overline|\\bar|\\dot)?\s*[({](\d+)[)}]", text)
    if m is None:
        raise CannotReadError("a repeating decimal")
    whole, head, repeat = m.groups()
    top = int(whole + head + repeat) - int(whole + head)
    return f"{top}/{(10 ** len(repeat) - 1) * 10 ** len(head)}"
