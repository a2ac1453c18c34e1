"""What stands behind the Makefile: make `.venv`, then run something in it.

    python3 scripts/dev.py demo             the loop, offline; installs what it needs to run
    python3 scripts/dev.py test [PYTEST..]  every test
    python3 scripts/dev.py integrations     the tests marked integration, against the real libraries
    python3 scripts/dev.py check            ruff, mypy, import contracts
    python3 scripts/dev.py docs             the site, strictly, into docs/_build/html
    python3 scripts/dev.py bench [WORD]     the benchmarks whose file name holds WORD
    python3 scripts/dev.py wheels [FOLDER]  every distribution, into dist/
    python3 scripts/dev.py env              only the environment

It uses uv where uv is on PATH (WHILEAI_NO_UV=1: not even then), else venv and pip, and writes no lock file.
The standard library only, and no syntax newer than Python 3.6: it has to start under an old `python3`, if
only to look for a newer one or to say which one is missing.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
BIN = VENV / SCRIPTS
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
INTEGRATIONS = ROOT / ".venv-integrations"
INTEGRATIONS_PYTHON = INTEGRATIONS / SCRIPTS / PYTHON.name
STAMP = VENV / "whileai-installed.txt"
INTEGRATIONS_STAMP = INTEGRATIONS / STAMP.name


# --- which interpreter ---


def interpreter_of(command):
    """The path of the interpreter that `command` starts, when it starts and is new enough; else None."""
    ask = f"import sys; print(sys.executable if sys.version_info >= {OLDEST} else '')"
    try:
        done = subprocess.run([command, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


def newest_interpreter():
    """This interpreter when it is new enough, else the newest on PATH; ends the program if there is none."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for command in [f"python3.{minor}" for minor in range(14, OLDEST[1] - 1, -1)] + ["python3", "python"]:
        found = interpreter_of(command) if shutil.which(command) else None
        if found:
            return found
    sys.exit(
        f"whileai needs Python {OLDEST[0]}.{OLDEST[1]} or later. {sys.executable} is "
        f"{sys.version_info[0]}.{sys.version_info[1]}, and PATH has no newer one.\n"
        "Install one (Debian: apt-get install python3 python3-venv; with uv: uv python install 3.12) "
        "and name it:\n  make test PYTHON=/path/to/python3"
    )


# --- the environment ---


def distributions():
    """The folders that hold a distribution: the kernel at the root, then the plugins, then contrib."""
    found = sorted(ROOT.glob("plugins/*/pyproject.toml")) + sorted(ROOT.glob("contrib/*/pyproject.toml"))
    return [ROOT] + [path.parent for path in found]


def requirements(level):
    """The installer's arguments: all of requirements-dev.txt, or for the demo its own distributions only."""
    if level == "dev":
        return ["-r", "requirements-dev.txt"]
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    own = [line.split()[1] for line in lines if line.startswith("-e ") and "contrib/" not in line]
    return [word for folder in own for word in ("-e", folder)]


def wanted_stamp(level):
    """What the stamp of an up-to-date environment says: the level, and a hash of what decides its content."""
    digest = hashlib.sha256()
    lists = ["requirements-dev.txt"] + (["requirements-integrations.txt"] if level == "integrations" else [])
    for path in [ROOT / name for name in lists] + [folder / "pyproject.toml" for folder in distributions()]:
        digest.update(str(path.relative_to(ROOT)).encode("utf-8") + b"\0" + path.read_bytes() + b"\0")
    return f"{level} {digest.hexdigest()}"


def is_current(level):
    """Whether the environment already holds `level`; what holds everything serves the demo too."""
    if not STAMP.is_file() or not interpreter_of(str(PYTHON)):
        return False
    good = [wanted_stamp("dev")] + ([wanted_stamp("demo")] if level == "demo" else [])
    return STAMP.read_text(encoding="utf-8").strip() in good


def ensure_environment(level):
    """Make `.venv` or bring it up to date, in one install command so that siblings find each other."""
    if is_current(level):
        return
    start = time.time()
    uv = None if os.environ.get("WHILEAI_NO_UV") else shutil.which("uv")
    say(f"environment ({level}, with {'uv' if uv else 'pip'})")
    if uv:
        if not interpreter_of(str(PYTHON)):
            run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, VENV])
        run([uv, "pip", "install", "--quiet", "--python", PYTHON, *requirements(level)])
    else:
        if not interpreter_of(str(PYTHON)):
            hint = "This Python makes no environments (Debian: apt-get install python3-venv), or install uv."
            run([sys.executable, "-m", "venv", "--clear", VENV], hint=hint)
        pip = [PYTHON, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        run([*pip, "hatchling", "editables"])  # one build environment for all of ours: 17 s instead of 138 s
        run([*pip, "--no-build-isolation", *requirements(level)])
    STAMP.write_text(wanted_stamp(level) + "\n", encoding="utf-8")
    say(f"environment ready in {time.time() - start:.0f} s")


def ensure_integrations():
    """Make `.venv-integrations` or bring it up to date. pip brings torch, since it takes the small build for CPUs."""
    wanted = wanted_stamp("integrations")
    if INTEGRATIONS_STAMP.is_file() and INTEGRATIONS_STAMP.read_text(encoding="utf-8").strip() == wanted:
        return
    start = time.time()
    say("environment (integrations): about 3 GB")
    if not interpreter_of(str(INTEGRATIONS_PYTHON)):
        run([sys.executable, "-m", "venv", "--clear", INTEGRATIONS])
    listed = (ROOT / "requirements-integrations.txt").read_text(encoding="utf-8").splitlines()
    torch = [line for line in listed if line.startswith("torch==")]
    pip = [INTEGRATIONS_PYTHON, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    run([*pip, "hatchling", "editables", *torch])
    uv = None if os.environ.get("WHILEAI_NO_UV") else shutil.which("uv") or shutil.which("uv", path=str(BIN))
    fast = [uv, "pip", "install", "--quiet", "--python", INTEGRATIONS_PYTHON, "--no-build-isolation"]
    run([*(fast if uv else [*pip, "--no-build-isolation"]), "-r", "requirements-integrations.txt"])
    alone = [line.split(": ")[1] for line in listed if line.startswith("# no-deps: ")]
    run([*pip, "--no-deps", *alone])
    INTEGRATIONS_STAMP.write_text(wanted + "\n", encoding="utf-8")
    say(f"environment ready in {time.time() - start:.0f} s")


# --- running ---


def say(text):
    """One line of progress."""
    print("== " + text, flush=True)


def call(command, cwd=ROOT):
    """Run a command with the environment's programs first on PATH; return its exit status."""
    variables = dict(os.environ, PATH=str(BIN) + os.pathsep + os.environ.get("PATH", ""))
    variables.pop("PYTHONHOME", None)
    return subprocess.call([str(word) for word in command], cwd=str(cwd), env=variables)


def run(command, cwd=ROOT, hint=""):
    """Run a command; end the program with its status, and with the hint, when it fails."""
    status = call(command, cwd)
    if status:
        print(f"failed ({status}): {' '.join(str(word) for word in command)}\n{hint}", file=sys.stderr)
        sys.exit(status)


def demo(args):
    """The loop, offline, each step printed."""
    ensure_environment("demo")
    run([BIN / "wai", "demo", *args])


def test(args):
    """Every test, or what pytest is told; as many workers as there are cores, four at most.

    Property tests draw the same examples each time, so that a run can be repeated; run pytest itself for new ones.
    """
    ensure_environment("dev")
    workers = [] if any(word.startswith("-n") for word in args) else ["-n", min(os.cpu_count() or 1, 4)]
    sys.exit(call([PYTHON, "-m", "pytest", "--hypothesis-seed=0", "--dist", "worksteal", *workers, *args]))


def integrations(args):
    """The tests that need the real libraries around us, against those libraries; nothing is fetched while they run."""
    ensure_environment("dev")
    ensure_integrations()
    os.environ.update(dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"))
    sys.exit(call([INTEGRATIONS_PYTHON, "-m", "pytest", "--hypothesis-seed=0", "-m", "integration", *args]))


def check(args):
    """Lint, format, types, import contracts: all of them, then the names of those that failed."""
    ensure_environment("dev")
    packages = [init.parent for folder in distributions() for init in folder.glob("whileai*/__init__.py")]
    checks = {
        "ruff check": [BIN / "ruff", "check", "."],
        "ruff format": [BIN / "ruff", "format", "--check", "."],
        "mypy": [PYTHON, "-m", "mypy", *packages],
        "import contracts": [BIN / "lint-imports"],
    }
    failed = []
    for name, command in checks.items():
        say(name)
        if call(command):
            failed.append(name)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


def docs(args):
    """The site; a warning is an error."""
    ensure_environment("dev")
    run(
        [
            PYTHON,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-j",
            "auto",
            "-b",
            "html",
            "docs",
            "docs/_build/html",
            *args,
        ]
    )
    say("docs/_build/html/index.html")


def bench(args):
    """The benchmark programs in tests/bench, one after the other."""
    ensure_environment("dev")
    for path in sorted(ROOT.glob("tests/bench/[!_]*.py")):
        if not args or any(word in path.name for word in args):
            say(path.name)
            run([PYTHON, path])


def wheels(args):
    """An sdist of every distribution, and a wheel made from that sdist."""
    ensure_environment("dev")
    out = Path(args[0]) if args else ROOT / "dist"
    for folder in distributions():
        run([PYTHON, "-m", "build", "--no-isolation", "--outdir", out.resolve(), folder], cwd=folder)


COMMANDS = {
    **{"demo": demo, "test": test, "integrations": integrations, "check": check},
    **{"docs": docs, "bench": bench, "wheels": wheels},
}


def main(argv):
    """Start again under a newer Python where this one is too old, then run the command."""
    if not argv or argv[0] not in [*COMMANDS, "env"]:
        sys.exit(__doc__)
    python = newest_interpreter()
    if python != sys.executable:
        sys.exit(subprocess.call([python, __file__, *argv]))
    # What a shell starts in the background ignores Ctrl-C, and so would every test about it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if argv[0] == "env":
        ensure_environment("dev")
    else:
        COMMANDS[argv[0]](argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
