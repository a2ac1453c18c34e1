"""The table of failures: whatever a plugin does, the rest runs, and what went wrong is said where it is needed."""

from __future__ import annotations

import pytest

from whileai_kernel.plugins import kernel_requirement, normalise, short_name

GOOD = """
from whileai_kernel import hookimpl

@hookimpl
def wai_register_verifiers(register):
    register("%s", "%s.graders:Shared", summary="Words shared.")
"""
HOOK = "from whileai_kernel import hookimpl\n@hookimpl\ndef "
GRADERS = """
class Shared:
    def __call__(self, row):
        return 1.0
"""
REPORT = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import whileai_kernel as k
    from whileai_kernel.plugins import manager
    error = None
    try:
        found = manager()
        entries = {kind: [e.id for e in k.entries(kind)] for kind in (%s)}
    except k.WhileaiError as err:
        error = str(err)
        found, entries = None, None

def refused(do):
    try:
        do()
    except k.WhileaiError as err:
        return [type(err).__name__, str(err)]

answer = {
    "error": error,
    "plugins": {p.name: [p.distribution, p.version, p.module] for p in found.plugins} if found else None,
    "failures": [[f.distribution, f.version, f.stage, f.message, f.fix] for f in found.failures] if found else None,
    "entries": entries,
    "warnings": [str(w.message) for w in caught],
    "modules": sorted(sys.modules),
}
"""


def good(name: str, verifier: str = "shared") -> dict:
    package = name.replace("-", "_")
    return {"name": name, "body": GOOD % (verifier, package), "files": {"graders.py": GRADERS}}


def report(site, extra: str = "", kinds: str = "'verifiers',", **env: str) -> dict:
    return site.run(REPORT % kinds + extra + "\nprint(json.dumps(answer))", **env).answer


def only_failure(answer: dict) -> list[str]:
    (failure,) = answer["failures"]
    assert sum(failure[0] in text for text in answer["warnings"]) == 1, answer["warnings"]
    return failure


def test_a_good_plugin_is_found(site):
    site.add(**good("acme-graders"), version="0.3.1")
    site.add(**good("whileai-extra"))
    answer = report(site)
    assert answer["plugins"]["acme-graders"] == ["acme-graders", "0.3.1", "acme_graders.plugin"]
    assert answer["plugins"]["extra"][0] == "whileai-extra"
    assert answer["entries"]["verifiers"] == ["acme-graders/shared", "extra/shared"]
    assert answer["failures"] == answer["warnings"] == []
    assert "acme_graders.graders" not in answer["modules"] and "pydantic" not in answer["modules"]


@pytest.mark.parametrize(
    ("body", "stage", "words"),
    [
        ("import module_that_nobody_has", "import", ["ModuleNotFoundError", "module_that_nobody_has"]),
        ("raise SystemExit(3)", "import", ["SystemExit", "3"]),
        ("import sys; sys.exit('no key')", "import", ["SystemExit", "no key"]),
        ("raise BaseException('odd')", "import", ["BaseException", "odd"]),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
            "import",
            ["E: its text raised ValueError"],
        ),
        ("raise ValueError('two\\nlines')", "import", ["two lines"]),
        ("def broken(:", "import", ["SyntaxError"]),
        (
            HOOK + "wai_row(row, stage, colour): pass",
            "register",
            ["colour", "wai_row"],
        ),
        (
            HOOK + "wai_addhooks(pluginmanager): raise ValueError('mine')",
            "register",
            ["mine"],
        ),
    ],
)
def test_a_plugin_that_does_not_load_costs_itself_alone(site, body, stage, words):
    site.add("acme-broken", body, version="0.9.2")
    site.add(**good("zzz-good"))
    answer = report(site)
    distribution, version, where, message, fix = only_failure(answer)
    assert (distribution, version, where) == ("acme-broken", "0.9.2", stage)
    assert all(word in message for word in words), message
    assert fix == "pip install -U acme-broken"
    assert list(answer["plugins"]) == ["zzz-good"]
    assert answer["entries"]["verifiers"] == ["zzz-good/shared"]


def test_the_failure_is_repeated_in_every_unknown_name(site):
    site.add("acme-broken", "import module_that_nobody_has", version="0.9.2")
    site.add(**good("acme-graders"))
    extra = "answer['unknown'] = [refused(lambda: k.make('verifiers', n)) for n in ('shard', 'else')]"
    for kind, text in report(site, extra)["unknown"]:
        assert kind == "UnknownNameError"
        assert "acme-broken 0.9.2 (import)" in text and "module_that_nobody_has" in text


LACKING = HOOK + "wai_dream(rows): pass\n"


@pytest.mark.parametrize(
    ("requires", "asked"),
    [
        (("pluggy", "whileai-kernel>=2.3,<3"), "whileai-kernel>=2.3,<3"),
        (("whileai_kernel (>=2.3)",), "whileai-kernel>=2.3"),
        (("Whileai.Kernel ~= 2.0 ; python_version > '3'",), "whileai-kernel~=2.0"),
        ((), "newer"),
    ],
)
def test_a_hook_that_the_kernel_lacks_names_the_kernel_it_needs(site, requires, asked):
    site.add("acme-dream", LACKING, requires=requires)
    site.add(**good("zzz-good"))
    answer = report(site)
    *_, stage, message, fix = only_failure(answer)
    assert stage == "hooks" and "wai_dream" in message and "1.0.0" in message and asked in message
    assert fix.startswith("pip install -U whileai-kernel")
    assert list(answer["plugins"]) == ["zzz-good"]


def test_each_plugin_with_an_unknown_hook_fails(site):
    for name in ("acme-a", "acme-b", "acme-c"):
        site.add(name, LACKING)
    answer = report(site)
    assert [f[0] for f in answer["failures"]] == ["acme-a", "acme-b", "acme-c"]
    assert answer["plugins"] == {} and len(answer["warnings"]) == 3


def test_an_optional_hook_is_no_failure(site):
    site.add("acme-dream", LACKING.replace("@hookimpl", "@hookimpl(optionalhook=True)"))
    answer = report(site)
    assert list(answer["plugins"]) == ["acme-dream"] and answer["failures"] == []


ADDS_KIND = """
from whileai_kernel import hookimpl

@hookimpl
def wai_addhooks(pluginmanager):
    from whileai_embed import hooks
    pluginmanager.add_hookspecs(hooks)

@hookimpl
def wai_register_embedders(register):
    register("hash", "whileai_embed.hashing:embed")
"""
KIND_SPEC = """
from whileai_kernel.hookspecs import hookspec

@hookspec
def wai_register_embedders(register):
    "Register embedders."
"""


@pytest.mark.parametrize("outsider", ["acme-embed", "zzz-embed"])
def test_a_plugin_adds_a_kind_and_others_use_it_in_either_order(site, outsider):
    site.add(
        "whileai-embed", ADDS_KIND, files={"hooks.py": KIND_SPEC, "hashing.py": "def embed(text): return [len(text)]"}
    )
    target = f"{outsider.replace('-', '_')}.big:embed"
    body = f"{HOOK}wai_register_embedders(register): register('big', {target!r})"
    site.add(outsider, body)
    extra = "from whileai_kernel.registry import kinds\nanswer['kinds'] = kinds()\n"
    extra += "answer['made'] = k.make('embedders', 'hash')('abc')"
    answer = report(site, extra, kinds="'embedders',")
    assert answer["failures"] == []
    assert answer["entries"]["embedders"] == sorted(["embed/hash", f"{outsider}/big"])
    assert answer["kinds"][-1] == "embedders" and answer["made"] == [3]


def test_a_plugin_for_another_api_is_reported_and_never_imported(site):
    site.add(
        "acme-next",
        "raise AssertionError('imported')",
        group="whileai.plugins.v2",
        version="2.0",
        requires=("whileai-kernel>=2",),
    )
    site.add("acme-past", "raise AssertionError('imported')", group="whileai.plugins.v0", version="0.1")
    answer = report(site)
    failures = {f[0]: f for f in answer["failures"]}
    assert "v2" in failures["acme-next"][3] and failures["acme-next"][4] == "pip install -U whileai-kernel>=2"
    assert "v0" in failures["acme-past"][3] and failures["acme-past"][4] == "pip install -U acme-past"
    assert not any(name.startswith("acme") for name in answer["modules"])


def test_two_distributions_may_claim_one_entry_point_name(site):
    site.add(**good("acme-graders"), point="graders")
    site.add(**good("other-graders"), point="graders")
    answer = report(site)
    assert answer["entries"]["verifiers"] == ["acme-graders/shared", "other-graders/shared"]


def test_a_second_entry_point_is_reported(site):
    site.add(**good("acme-two"))
    points = "[whileai.plugins.v1]\na = acme_two.plugin\nb = acme_two.other\n"
    (site.folder / "acme_two-0.3.1.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    *_, stage, message, _fix = only_failure(report(site))
    assert stage == "entry point" and "'b'" in message


def test_one_module_in_two_distributions_is_one_plugin(site):
    site.add(**good("acme-one"))
    site.add("acme-two", "")
    points = "[whileai.plugins.v1]\na = acme_one.plugin\n"
    (site.folder / "acme_two-0.3.1.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    answer = report(site)
    assert list(answer["plugins"]) == ["acme-one"]
    assert only_failure(answer)[0] == "acme-two"
    assert answer["entries"]["verifiers"] == ["acme-one/shared"]


@pytest.mark.parametrize("bare", ["aaa", "zzz"])
def test_short_names_never_clash(site, bare):
    site.add(**good(bare))
    site.add(**good(f"whileai-{bare}"))
    answer = report(site)
    assert sorted(answer["plugins"]) == sorted([bare, f"whileai-{bare}"])
    assert answer["entries"]["verifiers"] == sorted([f"{bare}/shared", f"whileai-{bare}/shared"])


def test_a_plugin_never_takes_the_name_of_local_components(site):
    site.add(**good("whileai-here"))
    extra = "k.register_local('verifiers', 'shared', len)\nanswer['ids'] = [e.id for e in k.entries('verifiers')]"
    assert report(site, extra)["ids"] == ["here/shared", "whileai-here/shared"]


def test_broken_metadata_of_others_is_not_our_business(site):
    site.add(**good("acme-graders"))
    for name, text in (("junk", "no section\n"), ("half", "[console_scripts]\nno equals sign\n")):
        info = site.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(text, encoding="utf-8")
    (site.folder / "bare-1.0.dist-info").mkdir()
    answer = report(site)
    assert list(answer["plugins"]) == ["acme-graders"] and answer["failures"] == []


@pytest.mark.parametrize(
    ("line", "stage"), [("acme", "entry point"), ("acme = no module!", "import"), ("a = ", "import")]
)
def test_an_entry_point_that_cannot_be_read_costs_itself_alone(site, line, stage):
    site.add(**good("acme-graders"))
    site.add("acme-odd", "")
    text = f"[whileai.plugins.v1]\n{line}\n"
    (site.folder / "acme_odd-0.3.1.dist-info" / "entry_points.txt").write_text(text, encoding="utf-8")
    answer = report(site)
    assert list(answer["plugins"]) == ["acme-graders"]
    assert only_failure(answer)[::2][:2] == ["acme-odd", stage]


def test_the_first_of_a_name_on_the_path_counts(site, tmp_path):
    from pathlib import Path

    site.add(**good("acme-graders"), version="2.0")
    older = tmp_path / "older"
    older.mkdir()
    first, site.folder = site.folder, older
    site.add(**good("acme-graders"), version="1.0")
    answer = report(site, PYTHONPATH=":".join(map(str, (first, older, Path(site.kernel)))))
    assert answer["plugins"]["acme-graders"][1] == "2.0" and answer["failures"] == []


# --- registering ---

TWICE = GOOD + '    register("other", "acme_twice.graders:Shared")\n    register("%s", "acme_twice.graders:Shared")\n'


def test_a_name_registered_twice_keeps_the_first(site):
    site.add("acme-twice", TWICE % ("shared", "acme_twice", "shared"), files={"graders.py": GRADERS})
    answer = report(site)
    assert answer["entries"]["verifiers"] == ["acme-twice/other", "acme-twice/shared"]
    *_, stage, message, _fix = only_failure(answer)
    assert stage == "wai_register_verifiers" and "twice" in message


@pytest.mark.parametrize("target", ["len", "'acme_odd.graders'", "None"])
def test_a_target_is_a_string_with_a_colon(site, target):
    body = f"{HOOK}wai_register_verifiers(register):\n    register('x', {target})\n"
    site.add("acme-odd", body)
    site.add(**good("zzz-good"))
    answer = report(site)
    assert "package.module:attribute" in only_failure(answer)[3]
    assert answer["entries"]["verifiers"] == ["zzz-good/shared"]


@pytest.mark.parametrize("what", ["1 / 0", "raise SystemExit", "register()", "register('a', 'b:c', colour='red')"])
def test_a_register_hook_that_raises_costs_itself_alone(site, what):
    body = f"{HOOK}wai_register_verifiers(register):\n    {what}\n"
    site.add("acme-odd", body)
    site.add(**good("zzz-good"))
    answer = report(site, "for _ in range(3): k.entries('verifiers')")
    assert only_failure(answer)[2] == "wai_register_verifiers"
    assert answer["entries"]["verifiers"] == ["zzz-good/shared"]


def test_a_hook_takes_any_subset_of_the_arguments(site):
    site.add("acme-nothing", HOOK + "wai_register_verifiers(): pass\n")
    answer = report(site)
    assert answer["failures"] == [] and answer["entries"]["verifiers"] == []


# --- configure ---


def test_configure_sees_the_settings_and_one_that_raises_costs_itself_alone(site):
    site.add(
        "acme-a",
        HOOK + "wai_configure(settings): raise RuntimeError('no')\n",
    )
    body = "from whileai_kernel import entries\nseen = []\n" + HOOK
    body += "wai_configure(settings): seen.append((settings.plugins, len(entries('verifiers'))))\n"
    body += "@hookimpl\ndef wai_unconfigure(): seen.append('gone')\n"
    site.add("acme-b", body)
    site.add(**good("zzz-good"))
    extra = """
import acme_b.plugin
from whileai_kernel.plugins import reset
reset()
answer["seen"] = acme_b.plugin.seen
answer["again"] = manager() is not found
answer["twice"] = len(acme_b.plugin.seen)
"""
    answer = report(site, extra)
    assert only_failure(answer)[2] == "wai_configure"
    assert answer["seen"][:2] == [[None, 1], "gone"]
    assert answer["again"] and answer["twice"] == 3


# --- the user wants out ---


@pytest.mark.parametrize(
    "names", ["acme-graders", "acme_graders, ", "ACME.Graders", "extra,acme-graders", "whileai-extra,acme-graders"]
)
def test_only_named_plugins_are_imported(site, names):
    site.add(**good("acme-graders"))
    site.add(**good("whileai-extra"))
    site.add("acme-broken", "raise AssertionError('imported')")
    site.add("acme-next", "raise AssertionError('imported')", group="whileai.plugins.v2")
    answer = report(site, WHILEAI_PLUGINS=names)
    assert set(answer["plugins"]) == {"acme-graders"} | ({"extra"} if "extra" in names else set())
    assert answer["failures"] == answer["warnings"] == []
    assert ("whileai_extra" in answer["modules"]) == ("extra" in names)


@pytest.mark.parametrize("names", ["", " ", ","])
def test_an_empty_list_loads_nothing(site, names):
    site.add(**good("acme-graders"))
    answer = report(site, WHILEAI_PLUGINS=names)
    assert answer["plugins"] == {} and answer["failures"] == []
    assert not any(name.startswith("acme") for name in answer["modules"])


def test_an_unknown_name_in_the_list_is_reported(site):
    site.add(**good("acme-graders"))
    answer = report(site, WHILEAI_PLUGINS="acme-graders,verfy,whileai-other")
    assert [(f[0], f[2], f[4]) for f in answer["failures"]] == [
        ("verfy", "settings", "pip install whileai-verfy"),
        ("whileai-other", "settings", "pip install whileai-other"),
    ]
    assert len(answer["warnings"]) == 2 and "WHILEAI_PLUGINS" in answer["warnings"][0]


@pytest.mark.parametrize(
    "body",
    [
        "import module_that_nobody_has",
        LACKING,
        HOOK + "wai_register_verifiers(register): 1 / 0\n",
        HOOK + "wai_configure(settings): 1 / 0\n",
    ],
)
def test_strict_mode_raises(site, body):
    site.add("acme-broken", body)
    answer = report(site, WHILEAI_STRICT_PLUGINS="1")
    assert "acme-broken 0.3.1" in answer["error"] and "WHILEAI_STRICT_PLUGINS" in answer["error"]


@pytest.mark.parametrize("body", ["import module_that_nobody_has", HOOK + "wai_configure(settings): 1 / 0\n"])
def test_strict_mode_does_not_settle_down(site, body):
    site.add("acme-broken", body)
    extra = "answer['second'] = refused(manager)"
    assert report(site, extra, WHILEAI_STRICT_PLUGINS="yes")["second"][0] == "PluginError"


def test_a_setting_that_cannot_be_read_is_an_error(site):
    answer = report(site, WHILEAI_STRICT_PLUGINS="perhaps")
    assert "WHILEAI_STRICT_PLUGINS='perhaps'" in answer["error"]


# --- names ---


def test_names_of_distributions():
    assert normalise("Acme__Graders.X") == "acme-graders-x"
    assert short_name("whileai_verify") == short_name("WhileAI.Verify") == "verify"
    assert short_name("acme-graders") == "acme-graders"
    assert short_name("whileai-") == "whileai-"
    assert short_name("whileai") == "whileai"


@pytest.mark.parametrize(
    ("requires", "asked"),
    [
        ([], ""),
        (["pydantic>=2"], ""),
        (["whileai-kernel"], "whileai-kernel"),
        (["whileai-kernel-extras>=9", "whileai_kernel<2,>=1.0"], "whileai-kernel<2,>=1.0"),
        (["whileai-kernel (>=1.0)"], "whileai-kernel>=1.0"),
        (["whileai-kernel>=1.0; extra == 'x'"], "whileai-kernel>=1.0"),
    ],
)
def test_kernel_requirement(requires, asked):
    assert kernel_requirement(requires) == asked


# --- threads ---


def test_the_first_lookup_from_eight_threads_asks_each_plugin_once(site):
    body = GOOD % ("shared", "acme_slow") + "    calls.append(1)\ncalls = []\n"
    body += "@hookimpl\ndef wai_configure(settings):\n    from whileai_kernel import entries\n    entries('markers')\n"
    site.add("acme-slow", body, files={"graders.py": GRADERS})
    site.add(**good("acme-graders", "other"))
    program = """
import json, sys, threading
import whileai_kernel as k
sys.setswitchinterval(1e-6)
gate, seen = threading.Barrier(8), []
def look(n):
    gate.wait()
    if n % 2:
        k.lookup("verifiers", "shared")
    seen.append([e.id for e in k.entries("verifiers")])
threads = [threading.Thread(target=look, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join(60) for t in threads]
import acme_slow.plugin
print(json.dumps([sorted(map(tuple, seen)), len(acme_slow.plugin.calls), any(t.is_alive() for t in threads)]))
"""
    seen, calls, hanging = site.run(program).answer
    assert seen == [["acme-graders/other", "acme-slow/shared"]] * 8
    assert (calls, hanging) == (1, False)
