"""The programs that tests compile: ``python tests/programs.py`` compiles all, on every core.

``nox -s tests`` begins with it, so that no test waits for a compiler.  A test that is run alone
compiles what it needs by itself.  Programs that are missing here are named at the end of a run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import test_engines
import test_zero_likelihood
from corpus_oracle import COMPILED_ONLY, CORPUS, reference_program
from log_gaussian import log_gaussian
from test_attack_sample import OUT_OF_RANGE, REJECTS
from test_temper_compiled import QUICK
from test_tempering_at_zero import HEAD, PROGRAM
from test_tempering_functions import RNG_PROGRAM
from test_user_agreement import DATA, GROUPS
from test_user_sample import (
    BIMODAL,
    BIMODAL_DATA,
    EIGHT_SCHOOLS,
    SCHOOLS,
    TUPLES,
    TUPLES_DATA,
)

from harness.engine.compile import compile_programs
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.errors import CompileError
from harness.folders import shipped
from harness.temper import temper, tempered_model
from harness.user.generated import program_without_generated

FRONTEND = Path(__file__).parent / "fixtures" / "cmdstan"
SHIPPED = {
    "banana": ["collapsed_tempering"],
    "gaussian_mixture": [
        "target",
        "pseudo_extended",
        "joint_tempering",
        "collapsed_tempering",
        "collapsed_pseudo_extended",
        "extended_hamiltonian",
    ],
    "horseshoe": ["target", "pseudo_extended_shared"],
    "radon": ["target"],
}
"""Variants of shipped models, besides those that ``test_engines`` compares."""


def programs(folder: Path) -> list[StanProgram]:
    """Return all of them, each once; those that tests write are written to a folder."""
    stan = shipped("stan")
    found = [
        *(StanProgram(stan / model / f"{variant}.stan", (stan,))
          for model, variants in SHIPPED.items() for variant in variants),
        *(test_engines.cases()[name].model.program(test_engines.program_of(name)[0])
          for name in test_engines.MODELS),
        *map(StanProgram, sorted(FRONTEND.glob("*.stan"))),
        log_gaussian()[0].program("target"),
        _written(folder, "inv_temp_draws", RNG_PROGRAM, stan),
        _written(folder, "at_zero", HEAD + PROGRAM, stan),
        *_of_the_corpus(folder),
        *_of_users(folder),
        *(test_zero_likelihood.model_of(name).program(test_zero_likelihood.COLLAPSED[1])
          for name in ("seen", "edge")),
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _written(folder: Path, stem: str, text: str, *include_paths: Path) -> StanProgram:
    folder.mkdir(exist_ok=True)
    path = folder / f"{stem}.stan"
    path.write_text(text, encoding="utf-8")
    return StanProgram(path, include_paths)


def _of_the_corpus(folder: Path) -> Iterator[StanProgram]:
    """Yield tempered programs, and the references that stanli cannot evaluate."""
    for name, (method, what) in QUICK.items():
        program = temper(CORPUS / f"{name}.stan", method=method, what=what, include_paths=(CORPUS,))
        yield _written(folder / name, "tempered", program.text, CORPUS)
        if name in COMPILED_ONLY:
            yield _written(folder / name, "ref", reference_program(name), CORPUS)


def _of_users(folder: Path) -> Iterator[StanProgram]:
    """Yield what ``harness sample`` runs of a program and its data."""
    given: dict[str, tuple[str, dict[str, Any]]] = {
        "es": (EIGHT_SCHOOLS, SCHOOLS),
        "bimodal": (BIMODAL[: BIMODAL.index("generated quantities")], BIMODAL_DATA),
        "groups": (GROUPS, DATA),
    }
    for name, (text, data) in given.items():
        model = tempered_model(_written(folder, name, text).path, data)
        yield from (model.program(variant) for variant in ("original", "collapsed_tempering"))
    yield tempered_model(_written(folder, "rejects", REJECTS).path, {"y": 0.3}).program("original")
    yield tempered_model(_written(folder, "tuples", TUPLES).path, TUPLES_DATA).program("original")
    ends = tempered_model(_written(folder, "out_of_range", OUT_OF_RANGE).path, {"y": 0.3})
    yield from (ends.program("original"), program_without_generated(ends))


def main() -> None:
    """Compile all of them and say how many; the tests of one that is wrong say more."""
    with TemporaryDirectory() as folder:
        try:
            compiled = compile_programs(programs(Path(folder)), require_cmdstan())
        except CompileError as error:
            print(f"Not all programs are compiled: {error}", file=sys.stderr)
        else:
            print(f"{len(compiled)} programs are compiled")


if __name__ == "__main__":
    main()
