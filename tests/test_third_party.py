"""Plugins of outsiders: built as wheels outside the repository, installed beside ours, found, checked, used.

One is good, one does not import, one offers a name that we offer too, one is for the next plugin API, and one
implements a hook that this kernel lacks. Each is reported, and the rest works.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.isolated

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["whileai-kernel{kernel}"]

[project.entry-points."{group}"]
{entry} = "{package}.plugin"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

REGISTER = """
from whileai_kernel import hookimpl

@hookimpl
def wai_register_verifiers(register):
    register("{verifier}", "{package}.graders:Shared", summary="Words shared with the reference.")
"""

GRADERS = '''
"""Verifiers of an outsider."""

from whileai_kernel.protocols import Example


class Shared:
    """1 when the answer holds a word of the reference, else 0."""

    examples = (
        Example({"final_text": "it is Paris", "privileged": {"reference": "Paris"}}, 1.0),
        Example({"final_text": "it is Rome", "privileged": {"reference": "Paris"}}, 0.0),
    )

    def __call__(self, row):
        reference = (row.get("privileged") or {}).get("reference")
        if reference is None:
            return {"reward": None, "status": "missing", "reason": "no reference"}
        shared = set((row.get("final_text") or "").split()) & set(str(reference).split())
        return {"reward": float(bool(shared)), "reason": f"{len(shared)} words shared"}
'''

LACKING = """
from whileai_kernel import hookimpl

@hookimpl
def wai_dream(rows):
    return rows
"""

# What a program sees in an environment that holds all of them, as JSON.
PROGRAM = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import whileai_kernel as k
    from whileai_kernel.plugins import manager
    found = manager()

def error(do):
    try:
        do()
    except k.WhileaiError as err:
        return [type(err).__name__, str(err)]

row = {"final_text": "it is Paris", "privileged": {"reference": "Paris"}}
exact = {"final_text": "Paris", "privileged": {"reference": "Paris"}}
print(json.dumps({
    "plugins": {p.name: [p.distribution, p.version] for p in found.plugins},
    "failures": {f.distribution: [f.version, f.stage, f.message, f.fix] for f in found.failures},
    "warnings": [str(w.message) for w in caught],
    "by_name": k.make("verifiers", "shared_words")(row)["reward"],
    "by_full_id": k.make("verifiers", "acme-graders/shared_words")(row)["reward"],
    "spec": k.spec_of(k.make("verifiers", "shared_words")).to_dict(),
    "clash": error(lambda: k.make("verifiers", "exact_match")),
    "clash_ours": k.make("verifiers", "verify/exact_match")(exact)["reward"],
    "clash_theirs": k.make("verifiers", "acme-clash/exact_match")(exact)["reward"],
    "unknown": error(lambda: k.make("verifiers", "shared_word")),
    "imported": sorted(name for name in sys.modules if name.startswith("acme_")),
}))
"""


def build(
    folder: Path,
    name: str,
    plugin: str,
    *,
    version: str = "0.3.1",
    group: str = "whileai.plugins.v1",
    entry: str = "acme",
    kernel: str = ">=1.0,<2",
) -> Path:
    """Write one distribution and build its wheel."""
    package = name.replace("-", "_")
    source = folder / name
    (source / package).mkdir(parents=True)
    files = {
        "pyproject.toml": PYPROJECT.format(
            name=name, version=version, group=group, entry=entry, package=package, kernel=kernel
        ),
        f"{package}/__init__.py": "",
        f"{package}/plugin.py": plugin.replace("{package}", package),
        f"{package}/graders.py": GRADERS,
    }
    for path, text in files.items():
        (source / path).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob(f"{package}-*.whl")
    return wheel


@pytest.fixture(scope="module")
def outsiders(tmp_path_factory):
    """Wheels of the outsiders. They all claim one entry-point name: the identity is the distribution."""
    folder = tmp_path_factory.mktemp("outsiders")
    good, clash = (
        REGISTER.replace("{verifier}", "shared_words"),
        REGISTER.replace("{verifier}", "exact_match"),
    )
    return [
        build(folder, "acme-graders", good),
        build(folder, "acme-clash", clash),
        build(folder, "acme-broken", "import module_that_nobody_has\n"),
        build(folder, "acme-next", good, group="whileai.plugins.v2", version="2.0.0"),
        build(folder, "acme-lacking", LACKING),
    ]


@pytest.fixture(scope="module")
def beside(wheels_for, outsiders, make_environment, tmp_path_factory):
    """An environment that holds our distributions and the outsiders."""
    ours = wheels_for("whileai")
    return make_environment(tmp_path_factory.mktemp("beside") / "env", [*ours, *outsiders])


@pytest.fixture(scope="module")
def seen(beside, tmp_path_factory):
    return json.loads(beside.run("-c", PROGRAM, cwd=tmp_path_factory.mktemp("run")).stdout)


def test_outsiders_are_discovered_beside_our_own(seen, wheels_for):
    ours = {path.name.split("-")[0].removeprefix("whileai_") for path in wheels_for("whileai")} - {"kernel"}
    assert set(seen["plugins"]) == ours | {"acme-graders", "acme-clash"}
    assert seen["plugins"]["acme-graders"] == ["acme-graders", "0.3.1"]


def test_a_verifier_is_served_by_name(seen):
    assert seen["by_name"] == seen["by_full_id"] == 1.0
    assert seen["spec"] == {
        "kind": "verifiers",
        "id": "acme-graders/shared_words",
        "version": "0.3.1",
        "params": {},
    }


def test_a_plugin_that_does_not_import_is_recorded_and_warned_about_once(seen):
    version, stage, message, _fix = seen["failures"]["acme-broken"]
    assert (version, stage) == ("0.3.1", "import")
    assert "module_that_nobody_has" in message
    assert sum("acme-broken" in text for text in seen["warnings"]) == 1


def test_the_failure_is_repeated_where_a_name_is_unknown(seen):
    kind, text = seen["unknown"]
    assert kind == "UnknownNameError"
    assert "acme-broken 0.3.1" in text
    assert "module_that_nobody_has" in text
    assert "shared_words" in text, "the near match"


def test_a_clash_names_both_and_both_work_by_full_id(seen):
    kind, text = seen["clash"]
    assert kind == "AmbiguousNameError"
    assert "acme-clash/exact_match" in text
    assert "verify/exact_match" in text
    assert seen["clash_ours"] == seen["clash_theirs"] == 1.0


def test_a_plugin_for_the_next_api_is_reported_and_never_imported(seen):
    version, _stage, message, fix = seen["failures"]["acme-next"]
    assert version == "2.0.0"
    assert "v2" in message
    assert "whileai-kernel" in fix
    assert not any(name.startswith("acme_next") for name in seen["imported"])


def test_a_hook_that_the_kernel_lacks_fails_that_plugin(seen):
    _version, _stage, message, _fix = seen["failures"]["acme-lacking"]
    assert "wai_dream" in message
    assert "whileai-kernel>=1.0,<2" in message or "whileai-kernel<2,>=1.0" in message


def test_only_those_that_failed_are_reported(seen):
    assert set(seen["failures"]) == {"acme-broken", "acme-next", "acme-lacking"}


def test_wai_plugins_lists_all(beside, tmp_path):
    printed = beside.wai("plugins", cwd=tmp_path).stdout
    for text in (
        "acme-graders",
        "0.3.1",
        "verifiers",
        "acme-broken",
        "module_that_nobody_has",
        "acme-next",
        "v2",
    ):
        assert text in printed


def test_wai_plugins_check_passes_the_good_one(beside, tmp_path):
    printed = beside.wai("plugins", "check", "acme-graders", cwd=tmp_path).stdout
    assert re.search(r"conforms: [1-9]\d* passed", printed)
    listed = json.loads(beside.wai("plugins", "check", "acme-graders", "--json", cwd=tmp_path).stdout)
    assert "acme-graders/shared_words" in json.dumps(listed)


@pytest.mark.parametrize("name", ["acme-broken", "acme-next", "acme-lacking", "acme-unheard-of"])
def test_wai_plugins_check_fails_the_others(beside, tmp_path, name):
    done = beside.wai("plugins", "check", name, cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert name in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_strict_mode_raises(beside, tmp_path):
    done = beside.run(
        "-c",
        "import whileai_kernel as k; k.entries('verifiers')",
        cwd=tmp_path,
        check=False,
        WHILEAI_STRICT_PLUGINS="1",
    )
    assert done.returncode != 0
    assert "PluginError" in done.stderr


@pytest.mark.parametrize(("named", "expected"), [("", []), ("verify,acme-graders", ["acme-graders", "verify"])])
def test_the_user_can_opt_out(beside, tmp_path, named, expected):
    program = "import sys, json; from whileai_kernel.plugins import manager\n"
    program += "print(json.dumps([sorted(p.name for p in manager().plugins), 'acme_broken' in sys.modules]))"
    done = beside.run("-c", program, cwd=tmp_path, WHILEAI_PLUGINS=named)
    assert json.loads(done.stdout) == [expected, False]
    assert done.stderr == ""


def test_the_loop_runs_beside_them(beside, loop_program, tmp_path):
    assert beside.run("-c", loop_program, cwd=tmp_path).stdout.startswith("pass@1 ")
