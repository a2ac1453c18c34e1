"""Rules of the repository: what every distribution has, and what no file may hold."""

from __future__ import annotations

import ast
import importlib
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from whileai_kernel.defaults import Sourced

ROOT = Path(__file__).resolve().parent.parent
GROUP = "whileai.plugins.v1"
KERNEL_CODE_LINES = 2400  # the budget is "about 2,000": raise this only together with the reason why


def repository_files() -> list[Path]:
    """What is tracked, and what would be if it were added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in sorted(set(done.stdout.split("\0"))) if name and (ROOT / name).is_file()]


def texts() -> Iterator[tuple[Path, str]]:
    """The text files of the repository; what is not UTF-8 is data."""
    for path in repository_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def modules_of(distribution) -> list[Path]:
    return sorted(distribution.package.rglob("*.py"))


def trees(paths) -> Iterator[tuple[Path, ast.AST]]:
    for path in paths:
        yield path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def at(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


# --- what every distribution has ---


def test_requirements_dev_names_every_distribution():
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    folders = [path.parent for path in sorted(ROOT.glob("*/*/pyproject.toml"))]
    wanted = {"-e ."} | {f"-e ./{path.relative_to(ROOT).as_posix()}" for path in folders}
    # Without extras: pip then no longer sees that a sibling which another one requires is given as a folder.
    editable = [line for line in lines if line.startswith("-e")]
    assert sorted(editable) == sorted(wanted)


def test_folder_is_complete(plugin):
    for name in (
        "pyproject.toml",
        "README.md",
        f"{plugin.package.name}/py.typed",
        f"{plugin.package.name}/plugin.py",
    ):
        assert (plugin.folder / name).is_file(), f"{plugin.name} has no {name}"
    assert list((plugin.folder / "tests").glob("test_*.py")), f"{plugin.name} has no tests"


def test_readme_says_what_it_adds_and_how(plugin):
    text = (plugin.folder / "README.md").read_text(encoding="utf-8").lower()
    assert text.startswith(f"# {plugin.name}"), "the title is the distribution's name"
    for word in ("pip install", "```python", "limits"):
        assert word in text, f"{plugin.name}/README.md lacks {word!r}"


def test_one_entry_point_with_the_plugins_own_name(plugin):
    points = plugin.project["entry-points"][GROUP]
    assert points == {plugin.name.removeprefix("whileai-"): f"{plugin.package.name}.plugin"}


def test_metadata_is_that_of_the_release(distribution, root):
    kernel = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    project = distribution.project
    if distribution.folder.parent.name != "contrib":  # contrib is outside the release and has versions of its own
        assert project["version"] == kernel["version"]
        assert project["license"] == kernel["license"]
    assert project["requires-python"] == kernel["requires-python"]
    assert distribution.pyproject["build-system"]["build-backend"] == "hatchling.build"


def test_dependencies_are_ranges(distribution):
    extras = distribution.project.get("optional-dependencies", {}).values()
    for text in [
        *distribution.project.get("dependencies", []),
        *(text for extra in extras for text in extra),
    ]:
        assert "==" not in text, f"{distribution.name} pins {text}"
        if text.startswith("whileai"):
            assert ">=" in text and ",<" in text, f"{distribution.name}: no range in {text!r}"
    if distribution.name != "whileai-kernel":
        assert "whileai-kernel" in distribution.requires


# What a plugin asks the registry for, and cannot do without: required, though never imported.
SPEAKS_THROUGH = {"whileai-local": ["whileai-openai"]}


def test_plugins_require_no_sibling_but_the_kernel(plugin):
    if plugin.name in {"whileai", "whileai-cli"}:
        return  # leaves: nobody depends on them
    siblings = [name for name in plugin.requires if name.startswith("whileai")]
    assert siblings == ["whileai-kernel", *SPEAKS_THROUGH.get(plugin.name, [])]


def test_import_contracts_cover_every_package(distributions, root):
    linter = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    packages = {dist.package.name for dist in distributions}
    plugins = packages - {"whileai_kernel", "whileai_cli", "whileai"}
    kernel, independent, leaves = linter["contracts"]
    assert set(linter["root_packages"]) == packages
    assert set(kernel["forbidden_modules"]) == packages - {"whileai_kernel"}
    assert set(independent["modules"]) == plugins
    assert set(leaves["source_modules"]) == plugins


def test_names_for_type_checkers_are_the_public_names(distribution):
    """The three lists of a lazy package agree: `TYPE_CHECKING`, `__all__`, and what is found at run time."""
    tree = ast.parse((distribution.package / "__init__.py").read_text(encoding="utf-8"))
    module = importlib.import_module(distribution.package.name)
    checked = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for line in node.body
        for alias in line.names
    }
    assert checked == set(getattr(module, "__all__", ()))
    for name in checked:
        assert getattr(module, name) is not None
    assert checked <= set(dir(module))


# --- the kernel ---


def code_lines(path: Path) -> int:
    """Lines that hold code: blank lines, comments and docstrings do not count."""
    source = path.read_text(encoding="utf-8")
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_kernel_stays_small(root):
    counts = {
        path.relative_to(root).as_posix(): code_lines(path)
        for path in sorted((root / "whileai_kernel").rglob("*.py"))
        if "testing" not in path.parts
    }
    assert sum(counts.values()) <= KERNEL_CODE_LINES, counts


def test_kernel_imports_pluggy_and_pydantic_only(root):
    allowed = set(sys.stdlib_module_names) | {"whileai_kernel", "pluggy", "pydantic"}
    allowed |= {"pydantic_core", "typing_extensions"}  # they come with pydantic
    for path, tree in trees(sorted((root / "whileai_kernel").rglob("*.py"))):
        here = allowed | ({"pytest"} if "testing" in path.parts else set())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for name in names:
                assert name.split(".")[0] in here, f"{at(path, node)} imports {name}"


# --- defaults ---


def test_every_constant_in_defaults_has_a_source(distribution):
    if not (distribution.package / "defaults.py").is_file():
        return
    module = importlib.import_module(f"{distribution.package.name}.defaults")
    constants = {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and not isinstance(value, TypeVar)
    }
    for name, value in constants.items():
        assert isinstance(value, Sourced), f"{module.__name__}.{name} is not Sourced"
        assert len(value.meaning) >= 10, f"{module.__name__}.{name}: the meaning is no sentence"
        assert len(value.source) >= 10, f"{module.__name__}.{name}: the source is no source"
        if value.source.startswith("convention"):  # a remark may follow
            assert re.match(r"convention, untested($|[:;.,] )", value.source), f"{module.__name__}.{name}"


# --- what no file may hold ---


def test_no_lock_files_and_no_generated_files():
    names = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"}
    bad = [path for path in repository_files() if path.name in names or path.suffix in {".pyc", ".whl"}]
    assert not bad


def test_no_machine_paths_and_no_registry_hosts():
    hosts = "|".join(
        [r"files\.python" + "hosted", "py" + r"pi\.org", r"registry\.npm" + "js", r"deb\.deb" + r"ian\.org"]
    )
    pattern = re.compile(rf"{hosts}|(?<![\w.])/(?:wo" + r"rk/|tmp/wai|tmp/bash_" + r"jobs)")
    bad = [f"{path.relative_to(ROOT)}: {match.group()}" for path, text in texts() for match in pattern.finditer(text)]
    assert not bad


def test_nothing_is_left_to_do():
    pattern = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b:?")
    paths = (
        (path, text) for path, text in texts() if path.suffix in {".py", ".toml", ".yml"} or path.name == "Makefile"
    )
    bad = [f"{path.relative_to(ROOT)}: {match.group()}" for path, text in paths for match in pattern.finditer(text)]
    assert not bad


def text_mode_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, bool]]:
    """Calls that open a text file: the call, what is called, and whether it writes."""
    never_text = {"os", "tarfile", "webbrowser", "zipfile", "urllib", "opener", "wave", "shelve", "dbm"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        owner = (
            node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
        )
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in {"read_text", "write_text"} and isinstance(node.func, ast.Attribute):
            yield node, name, name == "write_text"
        elif name in {"open", "fdopen", "NamedTemporaryFile", "TemporaryFile"} and owner not in never_text - {"os"}:
            if owner == "os" and name == "open":
                continue
            binary = name.endswith("TemporaryFile") or owner in {"gzip", "bz2", "lzma"}
            first = (
                0 if isinstance(node.func, ast.Attribute) and owner not in {"io", "gzip", "bz2", "lzma", "os"} else 1
            )
            modes = [keyword.value for keyword in node.keywords if keyword.arg == "mode"] or node.args[
                first : first + 1
            ]
            if modes and not isinstance(modes[0], ast.Constant):
                continue
            mode = str(modes[0].value) if modes else ("rb" if binary else "r")
            if "b" not in mode and not (owner in {"gzip", "bz2", "lzma"} and "t" not in mode):
                yield node, name, any(letter in mode for letter in "wax+")


def test_text_files_are_opened_as_utf8_and_written_with_plain_newlines(distribution):
    for path, tree in trees(modules_of(distribution) + sorted((distribution.folder / "tests").rglob("*.py"))):
        for call, name, writes in text_mode_calls(tree):
            keywords = {keyword.arg for keyword in call.keywords}
            positional = name == "read_text" and call.args
            assert "encoding" in keywords or None in keywords or positional, f"{at(path, call)}: no encoding"
            if writes and not {"tests", "testing"} & set(path.parts):
                assert "newline" in keywords or None in keywords, f"{at(path, call)}: no newline"


def is_blind(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in {"Exception", "BaseException"} for kind in caught)


def test_no_exception_is_swallowed_blindly(distribution):
    for path, tree in trees(modules_of(distribution)):
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and is_blind(node):
                silent = all(
                    isinstance(line, ast.Pass | ast.Continue)
                    or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
                    for line in node.body
                )
                assert not silent, f"{at(path, node)}: an exception is swallowed"


def test_functions_stay_readable(distribution):
    for path, tree in trees(modules_of(distribution)):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.body[0].lineno + 1
                doc = node.body[0]
                if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
                    lines -= doc.end_lineno - doc.lineno + 1
                assert lines <= 100, f"{at(path, node)}: {node.name} has {lines} lines"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open('x')", [False]),
        ("open('x', 'rb')", []),
        ("path.open('w')", [True]),
        ("path.open()", [False]),
        ("path.open(mode='ab')", []),
        ("os.open('x', 0)", []),
        ("gzip.open('x')", []),
        ("gzip.open('x', 'wt')", [True]),
        ("path.write_text('x')", [True]),
    ],
)
def test_the_scan_for_open_files_sees_what_it_should(source, found):
    assert [writes for _call, _name, writes in text_mode_calls(ast.parse(source))] == found
