"""Run the Python blocks of one Markdown page as one program: `python run_page.py PAGE`.

Lines keep their numbers, so that a traceback points into the page.
"""

import doctest
import sys
from pathlib import Path


def blocks(text):
    """Yield (number of the first line, source) of each ```python block; the fences may be indented."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        fence = line.strip()
        if start is None and fence == "```python":
            start, indent = number + 1, len(line) - len(line.lstrip())
        elif start is not None and fence == "```":
            yield start, "\n".join(inner[indent:] for inner in lines[start - 1 : number - 1]) + "\n"
            start = None


def main(page):
    namespace = {"__name__": "__main__"}
    failures = 0
    for start, source in blocks(Path(page).read_text(encoding="utf-8")):
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, namespace, page, page, start - 1)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            failures += runner.run(test, clear_globs=False).failed
            namespace.update(test.globs)
        else:
            exec(compile("\n" * (start - 1) + source, page, "exec"), namespace)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1])
