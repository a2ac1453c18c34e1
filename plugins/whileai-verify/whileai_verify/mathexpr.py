"""Read one mathematical expression from tokens: recursive descent into plain tuples (the trees of `mathparse`)."""

from __future__ import annotations

import re
from typing import Any

from whileai_verify.mathtokens import END, FUNCTIONS, GREEK, CannotReadError, Token

__all__ = ["expression"]

Tree = tuple[Any, ...]


def expression(tokens: list[Token]) -> Tree:
    """Return the tree of tokens that are one expression as a whole.

    Raises:
        CannotReadError: They are not.
    """
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
        if self.degrees():
            base = ("mul", base, ("div", ("const", "pi"), ("num", "180", None)))
        elif self.peek().text == "^":
            self.take()
            exponent = self.script()
            base = ("pow", base, exponent)
            if self.peek().text == "!":
                self.take()
                base = ("fn", "factorial", base)
            if self.peek().text == "^":
                raise CannotReadError("two exponents")
        return base

    def degrees(self) -> bool:
        r"""Take a degree sign (`^\circ`, `^{\circ}`) and return whether there was one."""
        for sign in (["^", "\\circ"], ["^", "{", "\\circ", "}"]):
            if [self.peek(n).text for n in range(len(sign))] == sign:
                self.at += len(sign)
                return True
        return False

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
