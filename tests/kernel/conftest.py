"""Fixtures of the kernel's own tests: child interpreters, and fake installations made on disk."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("kernel", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=400)
settings.load_profile(os.environ.get("WHILEAI_TEST_PROFILE", "kernel"))

ROOT = Path(__file__).resolve().parents[2]
KERNEL_PARTS = (
    "whileai_kernel",
    "pluggy",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
)


def environment(path: Path | str, **extra: str) -> dict[str, str]:
    """Environment of a child that sees nothing but `path`: no site-packages, no settings of ours or Python's."""
    keep = {n: os.environ[n] for n in ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "HOME") if n in os.environ}
    return keep | {"PYTHONPATH": str(path)} | extra


@pytest.fixture(scope="session")
def kernel_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernel and what it depends on, and no plugin: a site of its own for children."""
    folder = tmp_path_factory.mktemp("kernel-site")
    for name in KERNEL_PARTS:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None, name
        origin = Path(spec.origin)
        home = origin.parent if origin.name == "__init__.py" else origin
        (folder / home.name).symlink_to(home, target_is_directory=home.is_dir())
    write_metadata(folder, "whileai-kernel", "1.0.0")
    return folder


def write_metadata(
    folder: Path, name: str, version: str, entry_points: str = "", requires: tuple[str, ...] = ()
) -> None:
    """Write the metadata of a fake distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8", newline="\n")


@dataclass
class Done:
    """What a child did: exit status, the texts, and the last line of its output read as JSON."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        assert self.code == 0, f"exit {self.code}\n{self.out}\n{self.err}"
        return json.loads(self.out.strip().rpartition("\n")[2])


def run_python(executable: str, program: str, path: Path | str, *flags: str, **env: str) -> Done:
    """Run a program in a child that sees only `path`."""
    done = subprocess.run(
        [executable, "-S", *flags, "-c", program],
        capture_output=True,
        env=environment(path, **env),
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


@dataclass
class Site:
    """Fake distributions on disk, and children that see them beside the kernel."""

    folder: Path
    kernel: Path
    names: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        body: str = "",
        *,
        version: str = "0.3.1",
        group: str = "whileai.plugins.v1",
        point: str | None = None,
        module: str = "plugin",
        requires: tuple[str, ...] = (),
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Install a distribution: metadata, one entry point, and a package with a light module."""
        package = name.replace("-", "_")
        home = self.folder / package
        home.mkdir(parents=True)
        everything = {"__init__.py": "", f"{module}.py": body, **(files or {})}
        for file, text in everything.items():
            (home / file).write_text(text, encoding="utf-8", newline="\n")
        points = f"[{group}]\n{point or name} = {package}.{module}\n"
        write_metadata(self.folder, name, version, points, requires)
        self.names.append(name)

    def run(self, program: str, *flags: str, **env: str) -> Done:
        """Run a program in a child that sees the kernel and these distributions."""
        return run_python(sys.executable, program, os.pathsep.join([str(self.folder), str(self.kernel)]), *flags, **env)


@pytest.fixture
def site(tmp_path: Path, kernel_path: Path) -> Site:
    """An empty fake installation."""
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder, kernel_path)


@pytest.fixture
def child(kernel_path: Path) -> Callable[..., Done]:
    """Run a program in a child that sees the kernel alone: `child(program, *flags, **environment)`."""
    return lambda program, *flags, **env: run_python(sys.executable, program, kernel_path, *flags, **env)


@pytest.fixture(scope="session", params=["python3.11", "python3.12", "python3.13", "python3.14"])
def other_python(request: pytest.FixtureRequest) -> str:
    """Each other interpreter on PATH that starts; skipped where it is not there."""
    found = shutil.which(request.param)
    if found is None or subprocess.run([found, "-c", "pass"], capture_output=True).returncode != 0:
        pytest.skip(f"{request.param} is not on PATH")
    return found


@pytest.fixture
def other_child(other_python: str, kernel_path: Path, tmp_path: Path) -> Callable[..., Done]:
    """Run a program under another Python, which sees the kernel and pluggy (pure Python) and not pydantic."""
    folder = tmp_path / "pure"
    folder.mkdir()
    for name in ("whileai_kernel", "pluggy"):
        (folder / name).symlink_to((kernel_path / name).resolve(), target_is_directory=True)
    return lambda program, **env: run_python(other_python, program, folder, "-B", **env)


@pytest.fixture
def fresh_registry() -> Any:
    """Leave the registry as it was: local components of a test do not reach the next one."""
    from whileai_kernel import registry

    kept = {kind: dict(table) for kind, table in registry._local.items()}
    yield registry
    registry._local.clear()
    registry._local.update(kept)


@pytest.fixture
def failed_checks() -> Callable[[str, Any], dict[str, str]]:
    """Run the conformance kit on a component: `failed_checks("verifiers", Exact)` -> message by failed check."""
    from whileai_kernel.testing import CHECKS, check_component

    def run(kind: str, component: Any) -> dict[str, str]:
        report = check_component(kind, component)
        assert report.problems == () and report.planned == len(report.results) == len(CHECKS[kind])
        assert report.ok == all(r.outcome == "passed" for r in report.results)
        return {r.check: r.message for r in report.results if r.outcome != "passed"}

    return run
