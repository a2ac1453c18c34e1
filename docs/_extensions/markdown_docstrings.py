"""Docstrings here are plain text with Markdown's backticks and tables; Sphinx reads reStructuredText.

This extension translates what the docstrings use: `code`, pipe tables, and stars or trailing underscores that are
no markup. Doctest lines and indented code after `::` pass through. A docstring that is still no valid markup is
shown as it stands, in a fixed-width block: nobody has to learn reStructuredText to write one.
"""

import inspect
import io
import re

from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
EMPHASIS = re.compile(r"(?<![\w*\\])(\*\*?\w(?:[^*]*[^\s*])?\*\*?)(?![\w*])")
SEPARATOR = re.compile(r"\|[\s:|-]+\|$")


def inline(text):
    """Translate one line of prose."""
    parts = CODE.split(text)  # odd places are code
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part}``"
            if parts[i + 1][:1].isalnum():
                parts[i] += "\\ "
        elif "``" not in part:
            part = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", part)
            prose = EMPHASIS.split(part)  # odd places are emphasis, which both languages write alike
            prose[::2] = [re.sub(r"(?<!\\)([*|])", r"\\\1", plain) for plain in prose[::2]]
            parts[i] = "".join(prose)
    return "".join(parts)


def table(rows, indent):
    """Translate a pipe table, its separator line left out, into a list-table."""
    yield ""
    yield f"{indent}.. list-table::"
    yield f"{indent}   :header-rows: 1"
    yield ""
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]
        for i, cell in enumerate(cells):
            yield f"{indent}   {'*' if i == 0 else ' '} - {inline(cell)}".rstrip()
    yield ""


def translate(lines):
    """Translate the lines of one docstring."""
    out, rows, literal = [], [], None
    for line in [*lines, ""]:
        stripped = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if literal is not None and stripped and len(indent) <= literal:
            literal = None
        if literal is None and stripped.startswith("|") and stripped.endswith("|"):
            rows.append((line, indent))
            continue
        if rows:
            out += table([row for row, _ in rows if not SEPARATOR.match(row.strip())], rows[0][1])
            rows = []
        if literal is not None or stripped.startswith((">>>", "...", ".. ")):
            out.append(line)
        else:
            out.append(inline(line))
            if stripped.endswith("::"):
                literal = len(indent)
    return out[:-1]


def is_valid(lines):
    """Whether docutils reads the lines without a complaint."""
    settings = get_default_settings(Parser)
    settings.report_level, settings.halt_level, settings.warning_stream = 2, 5, io.StringIO()
    Parser().parse("\n".join(lines), new_document("docstring", settings))
    return not settings.warning_stream.getvalue()


def before_napoleon(app, what, name, obj, options, lines):
    """Sphinx calls this with each docstring, before napoleon reads its sections."""
    lines[:] = translate(list(lines))


def after_napoleon(app, what, name, obj, options, lines):
    """Sphinx calls this with what it is about to show."""
    if not is_valid(lines):
        text = inspect.getdoc(obj) or ""
        lines[:] = ["::", "", *(f"    {line}" for line in text.splitlines()), ""]


def setup(app):
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", after_napoleon, priority=900)
    return {"parallel_read_safe": True}
