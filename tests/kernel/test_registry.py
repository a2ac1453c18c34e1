"""Components by kind and name: lookup, making, specs, references; and the errors that say what to type next."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, ConfigDict

from whileai_kernel import registry as kernel_registry
from whileai_kernel.errors import (
    AmbiguousNameError,
    MissingDependencyError,
    ParameterError,
    PluginError,
    UnknownNameError,
)
from whileai_kernel.plugins import Plugin
from whileai_kernel.registry import Entry, Spec, entries, kinds, lookup, make, register_local, resolve, spec_of, stamp

pytestmark = pytest.mark.usefixtures("fresh_registry", "only_local")

ACME = Plugin("acme", "acme-graders", "0.3.1", "acme_graders.plugin")
OTHER = Plugin("other", "other-graders", "1.0", "other_graders.plugin")


@pytest.fixture
def only_local(monkeypatch):
    """A registry without any installed plugin, whatever this environment holds."""
    from whileai_kernel import plugins
    from whileai_kernel.settings import Settings

    monkeypatch.setattr(plugins, "_manager", plugins.Manager(Settings(plugins=())))
    monkeypatch.setattr(kernel_registry, "_tables", {})
    monkeypatch.setattr(kernel_registry, "_local", {})
    known = {"verifiers": {"verify": ["exact_match", "math_equal"]}}
    monkeypatch.setattr(kernel_registry, "_known", lambda kind: known.get(kind, {}))


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Offer a component of a fake plugin: `offer("verifiers", "x", "module:attr", plugin)`."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(kind: str, name: str, target: str, plugin: Plugin = ACME, source: str = "", **more) -> Entry:
        entries(kind)
        module = target.partition(":")[0]
        if source:
            (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        entry = Entry(kind, name, plugin, target, **more)
        kernel_registry._tables[kind][entry.id] = entry
        return entry

    return add


# --- lookup ---


def test_a_bare_name_works_while_one_offers_it(offer):
    entry = offer("verifiers", "shared", "m:x")
    assert lookup("verifiers", "shared") == lookup("verifiers", "acme/shared") == entry
    assert entry.id == "acme/shared"


def test_a_clash_lists_both_and_the_full_ids_work(offer):
    mine, theirs = offer("verifiers", "shared", "m:x"), offer("verifiers", "shared", "n:x", OTHER)
    with pytest.raises(AmbiguousNameError) as caught:
        lookup("verifiers", "shared")
    assert "acme/shared, other/shared" in str(caught.value) and "'acme/shared'" in caught.value.fix
    assert lookup("verifiers", "acme/shared") is mine and lookup("verifiers", "other/shared") is theirs


def test_a_local_component_and_a_plugin_clash_too(offer):
    offer("verifiers", "shared", "m:x")
    register_local("verifiers", "shared", len)
    with pytest.raises(AmbiguousNameError, match="here/shared"):
        lookup("verifiers", "shared")


def test_an_unknown_name_has_near_matches_and_what_is_there(offer):
    offer("verifiers", "shared_words", "m:x")
    with pytest.raises(UnknownNameError) as caught:
        lookup("verifiers", "Shared_word")
    assert "did you mean" in caught.value.fix and "shared_words" in caught.value.fix
    assert "acme/shared_words" in caught.value.why


@pytest.mark.parametrize("name", ["exact_match", "verify/exact_match"])
def test_an_unknown_name_says_what_to_install(name):
    with pytest.raises(UnknownNameError, match="pip install whileai-verify"):
        lookup("verifiers", name)


def test_nothing_near_still_says_what_to_do():
    with pytest.raises(UnknownNameError) as caught:
        lookup("markers", "qqqqqq")
    assert caught.value.fix


def test_an_unknown_kind_has_near_matches():
    with pytest.raises(UnknownNameError, match="did you mean 'verifiers'"):
        lookup("verifier", "x")
    with pytest.raises(UnknownNameError):
        register_local("verifier", "x", len)
    assert "verifiers" in kinds()


def test_entries_are_sorted_by_id(offer):
    for name in ("b", "a"):
        offer("verifiers", name, "m:x", OTHER)
    offer("verifiers", "z", "m:x")
    assert [e.id for e in entries("verifiers")] == ["acme/z", "other/a", "other/b"]


# --- loading ---


def test_a_missing_library_names_plugin_module_and_extra(offer):
    offer("verifiers", "x", "needy_a:X", source="import library_that_nobody_has.sub\nX = len", needs="fast")
    with pytest.raises(MissingDependencyError) as caught:
        make("verifiers", "x")
    text = str(caught.value)
    assert "acme/x of acme-graders 0.3.1" in text and "library_that_nobody_has" in text
    assert caught.value.fix == 'pip install "acme-graders[fast]"'
    assert isinstance(caught.value, ImportError)


def test_a_missing_library_without_an_extra_is_named(offer):
    offer("verifiers", "x", "needy_b:X", source="import library_that_nobody_has.sub\nX = len")
    with pytest.raises(MissingDependencyError) as caught:
        make("verifiers", "x")
    assert caught.value.fix == "pip install library-that-nobody-has"


@pytest.mark.parametrize(
    ("target", "source", "word"),
    [
        ("gone_c:X", "", "no target 'gone_c:X'"),
        ("there_d:Y", "X = len", "AttributeError"),
        ("there_e:X.y.z", "X = len", "AttributeError"),
        ("raises_f:X", "1 / 0", "ZeroDivisionError"),
        ("exits_g:X", "raise SystemExit('bye')", "SystemExit: bye"),
        ("import_h:X", "from json import nothing", "ImportError"),
        ("syntax_i:X", "def (", "SyntaxError"),
    ],
)
def test_a_target_that_does_not_load_is_the_plugins_fault(offer, target, source, word):
    offer("verifiers", "x", target, source=source)
    with pytest.raises(PluginError, match=r"acme-graders 0\.3\.1") as caught:
        make("verifiers", "x")
    assert word in str(caught.value) and caught.value.fix == "pip install -U acme-graders"


def test_a_dotted_attribute_is_found(offer):
    offer("verifiers", "x", "dotted_j:A.f", source="class A:\n    @staticmethod\n    def f(row): return 1.0")
    assert make("verifiers", "x")({}) == 1.0


# --- making ---


class Words:
    def __init__(self, least: int, *, fold: bool = True) -> None:
        self.least, self.fold = least, fold

    def __call__(self, row):
        return 1.0


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n: int = 0) -> None:
        self.n = n


@dataclass(frozen=True)
class FrozenOne:
    n: int = 0


class Model(BaseModel):
    n: int = 0


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    n: int = 0


class Refuses:
    def __setattr__(self, name, value):
        raise RuntimeError("no")


def grade(row, least=1):
    return float(len(row) >= least)


@pytest.mark.parametrize("cls", [Words, Slotted, FrozenOne, Model, FrozenModel, Refuses], ids=lambda c: c.__name__)
def test_every_object_carries_its_spec(cls):
    register_local("verifiers", "it", cls)
    params = {"least": 2} if cls is Words else {} if cls is Refuses else {"n": 3}
    one, two = make("verifiers", "it", **params), make("verifiers", "here/it", **params)
    assert spec_of(one) == Spec("verifiers", "here/it", "-", params)
    assert one is not two and spec_of(two) == spec_of(one)
    assert spec_of(one).to_dict() == {"kind": "verifiers", "id": "here/it", "version": "-", "params": params}
    assert spec_of(cls) is None


def test_a_function_is_the_component_and_parameters_are_bound():
    register_local("verifiers", "grade", grade)
    assert make("verifiers", "grade") is grade
    bound = make("verifiers", "grade", least=3)
    assert bound({"a": 1}) == 0.0
    assert spec_of(bound).params == {"least": 3}
    assert spec_of(grade).params == {}


def test_a_function_under_two_names_has_two_specs():
    def shared(row):
        return 1.0

    register_local("verifiers", "one", shared)
    register_local("verifiers", "two", shared)
    one, two = make("verifiers", "one"), make("verifiers", "two")
    assert [spec_of(c).id for c in (one, two, make("verifiers", "one"))] == ["here/one", "here/two", "here/one"]
    assert one({}) == two({}) == 1.0


def test_parameters_are_checked_by_name():
    register_local("verifiers", "words", Words)
    register_local("verifiers", "grade", grade)
    with pytest.raises(ParameterError, match="did you mean 'least'"):
        make("verifiers", "words", leest=1)
    with pytest.raises(ParameterError, match="needs least"):
        make("verifiers", "words", fold=False)
    with pytest.raises(ParameterError, match="its parameters are row, least"):
        make("verifiers", "grade", colour="red")
    with pytest.raises(TypeError):
        make("verifiers", "words", leest=1)


def test_a_target_that_takes_anything_gets_anything():
    register_local("verifiers", "open", lambda row, **params: params["x"])
    assert make("verifiers", "open", x=5)({}) == 5


def test_keys_never_reach_a_spec():
    register_local("judges", "model", lambda row, api_key=None, **more: 1.0)
    spec = spec_of(make("judges", "model", api_key="sk-12345", model="m"))
    assert "sk-12345" not in repr(spec) and spec.params["model"] == "m"


def test_spec_of_anything_else_is_none():
    assert spec_of(object()) is None and spec_of(None) is None and spec_of(3) is None


def test_a_spec_is_not_inherited_by_another_object_at_the_same_place():
    stamp(one := Slotted(), Spec("verifiers", "a/b", "1"))
    assert spec_of(one).id == "a/b"
    assert all(spec_of(Slotted()) is None for _ in range(100))


# --- local components ---


def test_local_components_can_be_replaced_unless_they_must_not():
    register_local("markers", "m", len, summary="first")
    register_local("markers", "m", abs)
    assert make("markers", "m") is abs
    with pytest.raises(ParameterError, match="registered already"):
        register_local("markers", "m", len, replace=False)
    assert [e.id for e in entries("markers")] == ["here/m"]


def test_local_components_survive_a_reset():
    register_local("markers", "m", len)
    kernel_registry.forget()
    assert lookup("markers", "m").local is len


# --- references ---


@pytest.fixture
def grader_file(tmp_path):
    path = tmp_path / "my graders.py"
    path.write_text(
        "def judge(row, least=1): return 1.0\nclass Judge:\n    def __init__(self, n): self.n = n\n",
        encoding="utf-8",
    )
    return path


def test_an_object_is_itself():
    assert resolve("judges", grade) is grade
    with pytest.raises(ParameterError):
        resolve("judges", None)
    with pytest.raises(ParameterError):
        resolve("judges", grade, least=2)


def test_a_registered_name():
    register_local("judges", "words", Words)
    assert resolve("judges", "words", least=2).least == 2


def test_a_file_and_a_name_in_it(grader_file):
    ref = f"{grader_file}:judge"
    assert resolve("judges", ref)({}) == 1.0
    assert resolve("judges", ref) is resolve("judges", ref)
    made = resolve("judges", f"{grader_file}:Judge", n=4)
    assert made.n == 4 and spec_of(made) == Spec("judges", f"{grader_file}:Judge", "-", {"n": 4})
    bound = resolve("judges", ref, least=2)
    assert isinstance(bound, functools.partial) and spec_of(bound).id == ref


def test_a_relative_file(grader_file, monkeypatch):
    monkeypatch.chdir(grader_file.parent)
    assert resolve("judges", "my graders.py:judge") is resolve("judges", f"{grader_file}:judge")
    assert resolve("judges", "./my graders.py:judge")({}) == 1.0


def test_files_with_one_name_are_two_modules(tmp_path):
    for n in (1, 2):
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "g.py").write_text(f"def judge(row): return {n}", encoding="utf-8")
    assert [resolve("judges", f"{tmp_path}/{n}/g.py:judge")({}) for n in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("text", "ref", "error", "word"),
    [
        ("", "gone.py:judge", PluginError, "is not a file"),
        ("1 / 0", "bad.py:judge", PluginError, "ZeroDivisionError"),
        ("raise SystemExit(2)", "exit.py:judge", PluginError, "SystemExit"),
        ("def (", "syntax.py:judge", PluginError, "SyntaxError"),
        ("def judge(row): return 1", "near.py:jugde", UnknownNameError, "did you mean 'judge'"),
        ("def judge(row): return 1", "none.py:", UnknownNameError, "no ''"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, text, ref, error, word):
    if text:
        (tmp_path / ref.partition(":")[0]).write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(error, match=word):
            resolve("judges", f"{tmp_path}/{ref}")


def test_a_module_and_a_name_in_it():
    from textwrap import dedent

    assert resolve("judges", "textwrap:dedent") is dedent
    with pytest.raises(UnknownNameError, match="did you mean 'dedent'"):
        resolve("judges", "textwrap:dednet")
    with pytest.raises(PluginError, match="does not import"):
        resolve("judges", "no_such_module_here:f")
    with pytest.raises(ParameterError, match="did you mean 'text'"):
        resolve("judges", "textwrap:dedent", texd=1)


@pytest.mark.parametrize("ref", ["nobody", "", "a/b", "hub:owner/name", "x:y:z", "not an identifier:f"])
def test_nothing_answers_to_the_reference(ref):
    with pytest.raises((UnknownNameError, PluginError)):
        resolve("judges", ref)


def test_a_file_is_imported_once_from_many_threads(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text("sum(range(3_000_000))\ndef judge(row): return 1.0\n", encoding="utf-8")
    gate, got = threading.Barrier(8), []

    def load():
        gate.wait()
        got.append(resolve("judges", f"{path}:judge"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(got) == 8 and len(set(map(id, got))) == 1


RESOLVERS = """
import json, warnings
warnings.simplefilter("ignore")
import whileai_kernel as k
from whileai_kernel.plugins import manager
from whileai_kernel.errors import UnknownNameError
answer = [k.resolve("judges", "hub:owner/name"), k.resolve("judges", "json:dumps") is json.dumps]
for _ in range(2):
    try:
        k.resolve("judges", "nobody")
    except UnknownNameError as err:
        answer.append("acme-bad" in str(err) and "RuntimeError: down" in str(err))
print(json.dumps([*answer, [f.stage for f in manager().failures]]))
"""


OBJECTS = """
import json
import whileai_kernel as k
class Graph:
    def invoke(self, state): return state
class Called:
    def __call__(self, row): return 1.0
graph, called = Graph(), Called()
found = k.resolve("agents", graph), k.resolve("judges", graph) is graph, k.resolve("agents", called) is called
print(json.dumps(found))
"""


def test_an_object_that_is_no_callable_is_offered_to_the_resolvers_and_returned_when_none_knows_it(site):
    body = "return 'driven' if kind == 'agents' and type(ref).__name__ in ('Graph', 'Called') else None"
    site.add("acme-graphs", f"from whileai_kernel import hookimpl\n@hookimpl\ndef wai_resolve(kind, ref): {body}\n")
    assert site.run(OBJECTS).answer == ["driven", True, True]


SPECS = """
import json
import whileai_kernel as k
said = []
for kind, spec in (("agents", "anthropic:large"), ("models", "acmee:large"), ("judges", "no_such_module:judge")):
    try:
        k.resolve(kind, spec)
    except k.WhileaiError as err:
        said.append(err.fix)
print(json.dumps(said))
"""


def test_a_model_of_a_plugin_that_is_not_installed_or_misspelt_says_what_to_type(site):
    body = "register('acme', 'acme_models:Acme')"
    site.add(
        "acme-models", f"from whileai_kernel import hookimpl\n@hookimpl\ndef wai_register_models(register): {body}\n"
    )
    install, near, other = site.run(SPECS).answer
    assert install == "pip install whileai-litellm"
    assert near == "did you mean 'acme:large'?"
    assert other == "check the module name, or pip install it"


COMPLAINT = """
import json, warnings
warnings.simplefilter("error")
import whileai_kernel as k
from whileai_kernel.plugins import manager
try:
    k.resolve("models", "acme:large")
except k.WhileaiError as err:
    print(json.dumps([type(err).__name__, str(err), len(manager().failures)]))
"""


def test_what_a_resolver_says_is_wrong_with_its_own_reference_reaches_the_caller(site):
    body = "raise SettingsError('acme:large needs a key', fix='export ACME_API_KEY=...')"
    head = "from whileai_kernel import hookimpl\nfrom whileai_kernel.errors import SettingsError\n"
    site.add("acme-models", f"{head}@hookimpl\ndef wai_resolve(kind, ref): {body}\n")
    name, text, failures = site.run(COMPLAINT).answer
    assert (name, failures) == ("SettingsError", 0)
    assert "export ACME_API_KEY" in text


def test_a_required_parameter_is_asked_for_beside_keywords_of_any_name():
    class Provider:
        def __init__(self, model, *, base_url=None, **options): ...

    register_local("models", "acme", Provider)
    with pytest.raises(ParameterError, match="needs model"):
        make("models", "acme")


def test_the_first_answer_of_a_resolver_wins_and_one_that_raises_costs_itself_alone(site):
    head = "from whileai_kernel import hookimpl\n@hookimpl\ndef wai_resolve"
    site.add("acme-bad", f"{head}(kind, ref): raise RuntimeError('down')\n")
    site.add("acme-hub", f"{head}(ref): return 'first' if ref.startswith('hub:') else None\n")
    site.add("zzz-hub", f"{head}(kind): return 'second' if kind == 'verifiers' else None\n")
    assert site.run(RESOLVERS).answer == ["first", True, True, True, ["wai_resolve"]]
