"""Random small programs are tempered rightly or refused in words, never wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from stan_density import StanDensity
from temper_fuzz import FuzzProgram, fuzz_program
from tempered_oracle import (
    Held,
    Parts,
    by_parameter,
    compare,
    constrained_points,
    continuous,
    pseudo_extended,
)

from harness.engine.program import StanProgram
from harness.errors import HarnessError
from harness.temper import temper
from harness.temper.program import TemperMethod

PROGRAMS = 100
NUM = 3
FREE = np.array([0.15, 0.5, 0.9])
CHUNKS = 10

_outcomes: Counter[str] = Counter()


def densities(program: FuzzProgram, folder: Path) -> tuple[StanDensity, StanDensity]:
    """Log prior and log joint density by the reference program."""
    path = folder / "reference.stan"
    path.write_text(program.reference, encoding="utf-8")
    prior, joint = (
        StanDensity(StanProgram(path), program.data | {"with_likelihood": part}) for part in (0, 1)
    )
    return prior, joint


def check(program: FuzzProgram, seed: int, folder: Path) -> str:
    """Temper a program by one method and compare; return what became of it."""
    path = folder / "program.stan"
    path.write_text(program.text, encoding="utf-8")
    method: TemperMethod = "pseudo-extended" if seed % 3 else "continuous"
    single = method == "continuous"
    num = 1 if single else NUM
    try:
        tempered = temper(path, method=method)
    except HarnessError as error:
        return f"refused: {error}"
    assert tuple(tempered.parameters) == tuple(program.parameters)
    prior, joint = densities(program, folder)
    held = Held(tempered, program.data, "sampled", np.empty(0), num, folder)
    rng = np.random.default_rng([9, seed])
    points = rng.uniform(-1.5, 1.5, (num, prior.dimension))
    base = np.array([prior.value(u) for u in points])
    parts = Parts(base, np.array([joint.value(u) for u in points]) - base)
    beta = FREE[:num]
    definition = continuous if single else pseudo_extended
    values = constrained_points(StanProgram(path), program.data, points, tuple(tempered.parameters))
    free = by_parameter(points, program.parameters)
    if single:
        values, free = ({name: each[0] for name, each in some.items()} for some in (values, free))
    said = held(held.values(values, free, beta))
    compare(said, definition(parts, beta, sampled=True))
    return "tempered"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int, tmp_path: Path) -> None:
    for seed in range(chunk, PROGRAMS, CHUNKS):
        program = fuzz_program(seed)
        try:
            _outcomes[check(program, seed, tmp_path).split(":")[0]] += 1
        except Exception as error:
            error.add_note(f"seed {seed}:\n{program.text}")
            raise


def test_few_are_refused() -> None:
    if sum(_outcomes.values()) < PROGRAMS:
        pytest.skip("not all of them have been run")
    assert _outcomes["tempered"] >= 0.9 * PROGRAMS
