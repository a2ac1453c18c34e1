"""Write the reference: a page per package from its docstrings, and tables of components, hooks and defaults.

The pages land in docs/reference/generated, which is not tracked.
"""

import argparse
import importlib
import inspect
import os
import pkgutil
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "reference" / "generated"


def distributions():
    """Yield (name, one line about it, import package, folder) of the kernel and the plugins."""
    for path in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        package = next(init.parent.name for init in sorted(path.parent.glob("*/__init__.py")))
        yield project["name"], project["description"], package, path.parent


def modules(package):
    """Names of the public modules of a package, itself first; light modules are in the table of components."""
    found = importlib.import_module(package)
    yield package
    for info in pkgutil.walk_packages(found.__path__, f"{package}."):
        leaf = info.name.rpartition(".")[2]
        if not leaf.startswith("_") and leaf not in {"plugin", "pytest_plugin"}:
            yield info.name


def cell(value):
    """Text for one cell of a Markdown table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def readme(folder):
    """The README of a distribution without its title; links to files of the repository become plain text."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\A# .*\n", "", text)
    return re.sub(r"(?<!!)\[([^\]\n]+)\]\((?!https?:)[^)\n]*\)", r"\1", text).strip()


def package_page(name, description, package, folder):
    """The page of one distribution: its README, then what its docstrings say, module by module."""
    lines = [f"# {name}", "", description if folder == ROOT else readme(folder), "", "## API", ""]
    for module in modules(package):
        lines += [f"### {module}", "", "```{eval-rst}", f".. automodule:: {module}"]
        if module == package:  # what it offers lazily is described in the module where it stands
            lines.append("   :no-members:")
        lines += ["```", ""]
    return "\n".join(lines)


def component_page():
    """A table of every registered component, by kind."""
    from whileai_kernel import registry

    lines = [
        "# Components",
        "",
        "What the plugins of this repository register; `wai plugins` shows what is installed.",
        "",
    ]
    ours = {name for name, *_ in distributions()}
    for kind in registry.kinds():
        found = [entry for entry in registry.entries(kind) if entry.plugin.distribution in ours]
        if found:
            lines += [f"## {kind}", "", "| id | what it is | needs |", "|---|---|---|"]
            for entry in found:
                needs = f"`{entry.plugin.distribution}[{entry.needs}]`" if entry.needs else ""
                lines.append(f"| `{entry.id}` | {cell(entry.summary)} | {needs} |")
            lines.append("")
    return "\n".join(lines)


def commands_page():
    """The help of every sub-command of `wai`."""
    from whileai_kernel import registry

    os.environ["COLUMNS"] = "100"  # argparse folds its help at the width of the terminal
    lines = ["# Command line", "", "Sub-commands come from plugins; `wai --help` lists those that are installed.", ""]
    ours = {name for name, *_ in distributions()}
    for entry in registry.entries("commands"):
        if entry.plugin.distribution in ours:
            parser = argparse.ArgumentParser(prog=f"wai {entry.name}", description=entry.summary)
            registry.make("commands", entry.id).add_arguments(parser)
            lines += [f"## wai {entry.name}", "", f"From `{entry.plugin.distribution}`.", ""]
            lines += ["```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def defaults_page():
    """A table of every number that shapes a result."""
    from whileai_kernel.defaults import collect

    lines = [
        "# Defaults",
        "",
        "Every number that shapes a result, with its source; `wai defaults` prints the same.",
        "",
    ]
    ours = {name.removeprefix("whileai-") for name, *_ in distributions()}
    lines += ["| plugin | name | value | meaning | source |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.plugin} | `{row.name}` | `{cell(row.value)}` | {cell(row.meaning)} | {cell(row.source)} |"
        for row in collect()
        if row.plugin in ours
    ]
    return "\n".join(lines) + "\n"


def hooks_page():
    """Every hook with its arguments."""
    from whileai_kernel import hookspecs

    lines = [
        "# Hooks",
        "",
        "```{eval-rst}",
        ".. automodule:: whileai_kernel.hookspecs",
        "   :no-members:",
        "   :no-index:",
        "```",
        "",
    ]
    for name, hook in vars(hookspecs).items():
        if name.startswith("wai_"):
            lines += [
                f"`{name}({', '.join(inspect.signature(hook).parameters)})`",
                f": {cell(inspect.getdoc(hook))}",
                "",
            ]
    return "\n".join(lines)


def write(app):
    """Write all pages; unchanged ones are left alone, so that Sphinx does not read them again."""
    OUT.mkdir(parents=True, exist_ok=True)
    pages = {found[2]: package_page(*found) for found in distributions()}
    pages |= {
        "components": component_page(),
        "defaults": defaults_page(),
        "hooks": hooks_page(),
        "commands": commands_page(),
    }
    for old in OUT.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for stem, text in pages.items():
        path = OUT / f"{stem}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
