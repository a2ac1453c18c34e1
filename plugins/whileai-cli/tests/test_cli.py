"""The wai command as a shell sees it: exit codes, encodings, errors, start-up."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_cli.main import main, overview
from whileai_cli.streams import ascii_form, make_tolerant
from whileai_cli.table import table
from whileai_kernel import register_local
from whileai_kernel.errors import WhileaiError
from whileai_kernel.testing import conformance_test

test_conformance = conformance_test("cli")

WAI = [sys.executable, "-c", "import sys; from whileai_cli.main import main; sys.exit(main())"]


def wai(*words, env=None, **kwargs):
    environment = {**os.environ, "PYTHONUTF8": "0", **(env or {})}
    return subprocess.run([*WAI, *words], capture_output=True, timeout=120, env=environment, **kwargs)


class Command:
    """A command of this test whose behaviour is given."""

    def __init__(self, run):
        self._run = run

    def add_arguments(self, parser):
        parser.add_argument("--n", type=int, default=1)

    def run(self, args):
        return self._run(args)


@pytest.fixture
def command():
    def add(run, name="trial"):
        register_local("commands", name, Command(run), summary="A command of the tests.")
        return name

    return add


def test_help_lists_commands_and_loads_no_target():
    code = (
        "import sys\nfrom whileai_cli.main import main\n"
        "code = main(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'torch', 'litellm', 'pydantic', 'pandas', 'httpx'}\n"
        "mine = {'whileai_cli.plugins_command', 'whileai_cli.defaults_command'}\n"
        "sys.stderr.write(repr((code, sorted((heavy | mine) & set(sys.modules)))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr == "(0, [])"
    assert "plugins" in done.stdout
    assert "Print every number that shapes a result" in done.stdout


def test_no_words_is_the_overview_and_version_names_the_kernel(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out == overview()
    assert main(["--version"]) == 0
    assert "kernel" in capsys.readouterr().out


def test_a_clashing_command_is_shown_by_its_full_id(command, capsys):
    command(lambda args: 0, name="plugins")
    try:
        assert "cli/plugins" in overview()
        assert "here/plugins" in overview()
        assert main(["plugins"]) == 2
        error = capsys.readouterr().err
        assert "cli/plugins" in error
        assert main(["cli/plugins"]) == 0
    finally:
        from whileai_kernel import registry

        registry._local["commands"].clear()


def test_unknown_command_names_the_nearest_and_exits_2(capsys):
    assert main(["defualts"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("wai: unknown command 'defualts'\n  why: ")
    assert "did you mean 'defaults'" in error
    assert "Traceback" not in error


def test_unknown_option_before_the_command(capsys):
    assert main(["--verison"]) == 2
    assert "'--version'" in capsys.readouterr().err


def test_an_unknown_command_of_a_known_plugin_says_what_to_install():
    done = wai("pass-at", "x.jsonl", env={"WHILEAI_PLUGINS": "cli"})
    assert done.returncode == 2
    assert b"pip install whileai-" in done.stderr


@pytest.mark.parametrize(("returned", "code"), [(0, 0), (None, 0), (1, 1), (3, 3), (True, 1)])
def test_the_exit_code_is_the_commands(command, returned, code):
    assert main([command(lambda args: returned)]) == code


def test_arguments_reach_the_command_and_wrong_ones_exit_2(command, capsys):
    seen = []
    name = command(lambda args: seen.append(args.n))
    assert main([name, "--n", "4"]) == 0
    assert seen == [4]
    assert main([name, "--n", "four"]) == 2
    assert main([name, "--nope"]) == 2
    assert "usage: wai trial" in capsys.readouterr().err
    assert main([name, "--help"]) == 0
    assert "A command of the tests." in capsys.readouterr().out


def test_errors_of_the_hierarchy_are_printed_in_three_parts(command, capsys):
    def run(args):
        raise WhileaiError("it broke", why="it was thin", fix="wai plugins")

    name = command(run)
    assert main([name]) == 2
    assert capsys.readouterr().err == "wai: it broke\n  why: it was thin\n  fix: wai plugins\n"
    with pytest.raises(WhileaiError):
        main(["--traceback", name])


def test_a_missing_file_is_a_mistake_and_a_defect_keeps_its_traceback(command, tmp_path, capsys):
    missing = tmp_path / "none.jsonl"

    def reads(args):
        return len(missing.read_text(encoding="utf-8"))

    def defect(args):
        raise ZeroDivisionError("defect")

    assert main([command(reads)]) == 2
    assert f"cannot use {missing}" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        main([command(defect)])


def test_ctrl_c_is_130_without_traceback(command, capsys):
    def run(args):
        raise KeyboardInterrupt

    assert main([command(run)]) == 130
    assert capsys.readouterr().err == "wai: interrupted\n"


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_real_ctrl_c_ends_a_running_command():
    code = (
        "import sys, threading\n"
        "from whileai_kernel import register_local\n"
        "from whileai_cli.main import main\n"
        "class Waits:\n"
        "    def add_arguments(self, parser): pass\n"
        "    def run(self, args):\n"
        "        print('ready', flush=True)\n"
        "        threading.Event().wait(60)\n"
        "register_local('commands', 'waits', Waits())\n"
        "sys.exit(main(['waits']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == b"wai: interrupted\n"


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_reader_that_leaves_is_quiet():
    read, write = os.pipe()
    process = subprocess.Popen([*WAI, "defaults"], stdout=write, stderr=subprocess.PIPE)
    os.close(read)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert err == b""
    assert process.returncode in (0, 141)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "gbk"])
def test_no_encoding_of_the_terminal_ends_a_command(encoding):
    code = (
        "import sys\nfrom whileai_kernel import register_local\nfrom whileai_cli.main import main\n"
        "class Prints:\n"
        "    def add_arguments(self, parser): pass\n"
        "    def run(self, args): print('caf\\u00e9 \\u2192 \\u2713 \\u4ecb \\U0001f917 \\ud83d')\n"
        "register_local('commands', 'prints', Prints(), summary='\\u2192 prints')\n"
        "sys.exit(main(['prints']) or main(['--help']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "caf" in text
    if encoding == "ascii":
        assert text.startswith("cafe -> ok \\u4ecb \\U0001f917 \\ud83d")
    if encoding == "cp1252":
        assert text.startswith("caf\u00e9 -> ok \\u4ecb \\U0001f917 \\ud83d")


def test_a_locale_without_unicode_prints_the_defaults():
    done = wai("defaults", env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert b"source: " in done.stdout


@given(st.text())
def test_the_ascii_form_is_ascii_and_leaves_ascii_alone(text):
    form = ascii_form(text)
    assert form.isascii()
    if text.isascii():
        assert form == text


def test_streams_that_cannot_be_told_are_left_alone():
    make_tolerant(io.StringIO())
    make_tolerant(None)


def test_a_plugin_that_fails_is_a_line_not_a_stack(tmp_path):
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text("[whileai.plugins.v1]\nb = broken_module\n", encoding="utf-8")
    (tmp_path / "broken_module.py").write_text("import nothing_of_that_name\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = wai("plugins", env={"PYTHONPATH": path})
    assert done.returncode == 0
    assert b"failed: broken 1.0 (import)" in done.stdout
    assert b"wai: warning: plugin broken 1.0" in done.stderr
    assert b"Traceback" not in done.stderr
    listed = json.loads(wai("plugins", "--json", env={"PYTHONPATH": path}).stdout)
    assert listed["failures"][0]["distribution"] == "broken"
    checked = wai("plugins", "check", "broken", env={"PYTHONPATH": path})
    assert checked.returncode == 2
    assert b"nothing_of_that_name" in checked.stderr


def test_plugins_lists_distribution_version_and_kinds(capsys):
    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["plugin", "distribution", "version", "adds"]
    assert any(line.split()[:2] == ["cli", "whileai-cli"] and "commands" in line for line in lines)
    assert main(["plugins", "--json"]) == 0
    listed = {p["name"]: p for p in json.loads(capsys.readouterr().out)["plugins"]}
    assert listed["cli"]["kinds"] == {"commands": 2}


def test_plugins_of_one_plugin_lists_its_components(capsys):
    assert main(["plugins", "list", "cli"]) == 0
    out = capsys.readouterr().out
    assert "cli/defaults" in out
    assert main(["plugins", "list", "cli", "--json"]) == 0
    assert {e["id"] for e in json.loads(capsys.readouterr().out)} == {"cli/defaults", "cli/plugins"}
    assert main(["plugins", "list", "clip"]) == 2
    assert "did you mean 'cli'" in capsys.readouterr().err


def test_plugins_check_is_0_for_a_plugin_that_conforms_and_1_for_one_that_does_not(tmp_path, capsys):
    assert main(["plugins", "check", "cli"]) == 0
    assert "conforms: " in capsys.readouterr().out
    assert main(["plugins", "check"]) == 2
    folder = tmp_path / "acme_odd-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-odd\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text("[whileai.plugins.v1]\no = acme_odd\n", encoding="utf-8")
    (tmp_path / "acme_odd.py").write_text(
        "from whileai_kernel import hookimpl\n"
        "@hookimpl\n"
        "def wai_register_verifiers(register):\n"
        "    register('always', 'acme_odd:always')\n"
        "def always(row):\n"
        "    return 1.0\n",
        encoding="utf-8",
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = wai("plugins", "check", "acme-odd", "--json", env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False


def test_defaults_prints_value_meaning_and_source(capsys):
    assert main(["defaults", "kernel"]) == 0
    out = capsys.readouterr().out
    assert "  THRESHOLD = 1.0\n" in out
    assert out.count("source: ") == out.count(" = ")
    assert main(["defaults", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"plugin", "name", "value", "meaning", "source"} == set(rows[0])
    assert all(row["source"] and row["meaning"] for row in rows)
    assert main(["defaults", "kernle"]) == 2
    assert "did you mean 'kernel'" in capsys.readouterr().err


def test_table_pads_and_leaves_no_trailing_blanks():
    text = table(("a", "bb"), [("ccc", 1), ("d", "")])
    assert text.splitlines() == ["a    bb", "ccc  1", "d"]


def test_main_may_run_in_a_thread(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["plugins", "list", "cli"])))
    thread.start()
    thread.join(60)
    assert codes == [0]
