"""What can be run here: ``nox -l`` is the menu.

Everything after ``--`` goes to the program that the session runs.  Virtual environments are
kept and reused; delete ``.nox`` to start afresh.
"""

from __future__ import annotations

import shutil

import nox

nox.needs_version = ">=2024.10.9"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]
nox.options.error_on_missing_interpreters = True

PROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *groups: str) -> None:
    """Install the project, editable, and the named groups of tools."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, *groups))


@nox.session
def experiments(session: nox.Session) -> None:
    """Run the experiments and write results/report/index.html (default profile: quick).

    The benchmark `hard` runs only if it is named: `-- hard`.
    """
    # Pilots of models without a NumPy density evaluate the Stan program through stanli.
    session.install("-e", ".[stanli]")
    session.run("harness", "run", *session.posargs)


# A process of tests on each core; one that has nothing left to do takes tests from another.
EACH_CORE = ["-n", "logical", "--dist", "worksteal"]
# Processes share the cores already: their linear algebra must not start threads of its own.
ONE_THREAD = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, compiled ones included; the slow ones with `-- -m slow`."""
    install(session, "tests")
    options = session.posargs
    if not options:
        # On all cores, so that no test waits for a compiler; what fails here fails in a test, too.
        session.run("python", "tests/programs.py")
        options = ["-m", "not slow", "--all-compiled"]
    session.run("pytest", *EACH_CORE, *options, env=ONE_THREAD)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, imports, spelling, the project table (Stan's own: tests/test_stan_style.py)."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    # From the working folder: nothing of the project needs to be installed for it.
    session.run("lint-imports", "--no-cache", "--no-logo")
    session.run("codespell")
    session.run("validate-pyproject", "pyproject.toml")


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy --strict."""
    install(session, "types", "tests")
    session.run("mypy", *(session.posargs or ["harness", "experiments", "tests", "noxfile.py"]))


@nox.session(default=False)
def pages(session: nox.Session) -> None:
    """Open every page of a smoke run's report in headless Chromium, which must be here."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        session.error("there is no Chromium: install it (Debian: apt install chromium)")
    install(session, "tests", "pages")
    session.run("pytest", "tests/pages", *session.posargs)


@nox.session(default=False)
def peers(session: nox.Session) -> None:
    """Run the tests of other packages' samplers in the benchmark; JAX among them takes 360 MB."""
    install(session, "tests")
    session.install("-e", ".[peers]")
    names = ("peers", "blackjax", "nested_slices")
    files = [f"tests/test_hard_{name}.py" for name in names]
    session.run("pytest", *EACH_CORE, *(session.posargs or files), env=ONE_THREAD)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html (a warning is an error); run its examples."""
    install(session, "docs", "tests")
    # With a fresh environment: pages that have not changed would not warn again.
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--builder", "html"]
    session.run("sphinx-build", *options, "docs", "docs/_build/html", *session.posargs)
    session.run("pytest", *EACH_CORE, "tests/docs", env=ONE_THREAD)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure speed as ratios inside one run; nothing else should be running."""
    install(session, "tests")
    session.run("python", "-m", "tests.bench", *session.posargs)


@nox.session(default=False)
def attack(session: nox.Session) -> None:
    """Attack with some hundred random cases: mutated files, kills, programs of known log Z."""
    install(session, "tests")
    session.run("python", "-m", "tests.attack", *session.posargs, env=ONE_THREAD)
