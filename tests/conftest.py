"""Fixtures of the tests that span packages: the distributions, their wheels, environments of their own.

Plugins do not see this file: their fixtures come from `whileai_kernel.testing`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Distribution:
    """One folder with a pyproject.toml: the kernel, a plugin, or a member of contrib."""

    folder: Path

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def project(self) -> dict[str, Any]:
        return self.pyproject["project"]

    @property
    def name(self) -> str:
        return self.project["name"]

    @cached_property
    def packages(self) -> list[Path]:
        """The import packages: the folders that hold an `__init__.py`."""
        return sorted(
            init.parent for init in self.folder.glob("*/__init__.py") if init.parent.name not in {"tests", "docs"}
        )

    @property
    def package(self) -> Path:
        assert len(self.packages) == 1, f"{self.name} has more than one import package: {self.packages}"
        return self.packages[0]

    @property
    def requires(self) -> list[str]:
        """Names of the distributions it depends on, extras left out."""
        return [re.split(r"[\s\[<>=!~;]", text, maxsplit=1)[0] for text in self.project.get("dependencies", [])]


KERNEL = Distribution(ROOT)
PLUGINS = [Distribution(path.parent) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
CONTRIB = [Distribution(path.parent) for path in sorted(ROOT.glob("contrib/*/pyproject.toml"))]


@pytest.fixture
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture
def distributions() -> list[Distribution]:
    """The kernel and all plugins, contrib left out."""
    return [KERNEL, *PLUGINS]


@pytest.fixture(params=PLUGINS + CONTRIB, ids=lambda dist: dist.name)
def plugin(request: pytest.FixtureRequest) -> Distribution:
    """Each plugin, contrib included."""
    return request.param


@pytest.fixture(params=[KERNEL, *PLUGINS, *CONTRIB], ids=lambda dist: dist.name)
def distribution(request: pytest.FixtureRequest) -> Distribution:
    """The kernel and each plugin, contrib included."""
    return request.param


@pytest.fixture(scope="session")
def loop_program() -> str:
    """The program of the README, its first Python block: simulate, grade, measure, select, export."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition("```python\n")[2].partition("```")[0]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public recordings beside a checkout; the test is skipped where there is none."""
    named = os.environ.get("WHILEAI_SHARED")
    homes = [Path(named)] if named else [folder / "shared" for folder in ROOT.parents]
    for home in homes:
        for folder in (home, home / "data"):
            if (folder / "tau_bench_airline_gpt4o.json").is_file():
                return folder
    pytest.skip("public recordings not found: set WHILEAI_SHARED to the folder that holds data/")


# --- running Python ---


def clean_environ(**extra: str) -> dict[str, str]:
    """The environment variables for a child: nothing that changes what it imports or finds."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith(("WHILEAI_", "PYTEST_XDIST"))
    }
    return kept | {"PYTHONUTF8": "1"} | extra


@dataclass(frozen=True)
class Python:
    """An interpreter of some environment, to run things with."""

    executable: Path

    def run(
        self, *args: str | Path, cwd: Path | None = None, check: bool = True, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `python ARGS..`; with `check`, a failure fails the test and shows what was printed."""
        done = subprocess.run(
            [str(self.executable), *map(str, args)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            env=clean_environ(**environ),
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode != 0:
            pytest.fail(f"{args}: exit {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}", pytrace=False)
        return done

    def wai(self, *args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the `wai` command of this environment."""
        return self.run(self.executable.parent / "wai", *args, **options)

    def modules_after(self, program: str, *args: str) -> set[str]:
        """Names of the modules that are loaded after `program` has run."""
        tail = "\nimport sys as _s, json as _j\nprint('MODULES', _j.dumps(sorted(_s.modules)))"
        done = self.run("-c", program + tail, *args)
        return set(json.loads(done.stdout.rpartition("MODULES ")[2]))


@pytest.fixture(scope="session")
def python() -> Python:
    """The interpreter that runs the tests."""
    return Python(Path(sys.executable))


# --- wheels and environments of their own ---


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between worker processes, where the system has one; without it the work is done twice."""
    with path.open("w", encoding="utf-8") as handle:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build_wheel(folder: Path, out: Path) -> None:
    """Build one wheel with the backend of this environment: no index, no isolation."""
    Python(Path(sys.executable)).run("-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=folder)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A wheel of every distribution, by its name; built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent
    out, unfinished = base / "wheels", base / f"wheels-{os.getpid()}"
    with locked(base / "wheels.lock"):
        if not out.is_dir():
            for dist in [KERNEL, *PLUGINS, *CONTRIB]:
                build_wheel(dist.folder, unfinished)
            unfinished.rename(out)
    found = {path.name.split("-")[0].replace("_", "-"): path for path in out.glob("*.whl")}
    assert set(found) == {dist.name for dist in [KERNEL, *PLUGINS, *CONTRIB]}
    return found


def with_siblings(name: str) -> list[str]:
    """The name of a distribution, and of all of ours that it needs, the kernel included."""
    ours = {dist.name: dist for dist in [KERNEL, *PLUGINS, *CONTRIB]}
    found: set[str] = set()
    queue = [name, "whileai-kernel"]
    while queue:
        current = queue.pop()
        if current in ours and current not in found:
            found.add(current)
            queue += ours[current].requires
    return sorted(found)


@pytest.fixture(scope="session")
def wheels_for(wheels: dict[str, Path]) -> Callable[[str], list[Path]]:
    """Wheels of one distribution and of all of ours that it needs."""
    return lambda name: [wheels[found] for found in with_siblings(name)]


MakeEnvironment = Callable[[Path, Iterable[str | Path]], Python]


@pytest.fixture(scope="session")
def make_environment() -> MakeEnvironment:
    """Make a fresh environment that holds the given wheels and requirements: with uv, else with venv and pip.

    Our own distributions are always given as wheel files, so that no index is asked for their names.
    """

    def make(folder: Path, requirements: Iterable[str | Path]) -> Python:
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        wanted = [str(requirement) for requirement in requirements]
        runner = Python(Path(sys.executable))
        if runner.run("-m", "uv", "--version", check=False).returncode == 0:
            runner.run("-m", "uv", "venv", "--quiet", "--python", sys.executable, folder)
            runner.run("-m", "uv", "pip", "install", "--quiet", "--python", python, *wanted)
        else:
            venv.create(folder, with_pip=True)
            Python(python).run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        return Python(python)

    return make


@pytest.fixture(scope="session")
def from_wheels(
    wheels: dict[str, Path], make_environment: MakeEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Python]:
    """An environment that holds every distribution, from wheels alone."""
    folder = tmp_path_factory.mktemp("from-wheels")
    yield make_environment(folder / "env", [wheels[dist.name] for dist in [KERNEL, *PLUGINS]])
    shutil.rmtree(folder)
