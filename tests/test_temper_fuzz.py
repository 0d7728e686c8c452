"""Random small programs are tempered rightly or refused in words, never wrong."""

from __future__ import annotations

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
from harness.errors import HarnessError, RewriteError
from harness.temper import temper
from harness.temper.templates import Variant

PROGRAMS = 100
NUM = 3
FREE = np.array([0.15, 0.5, 0.9])
CHUNKS = 10


def densities(program: FuzzProgram, folder: Path) -> tuple[StanDensity, StanDensity]:
    """Log prior and log joint density by the reference program."""
    path = folder / "reference.stan"
    path.write_text(program.reference, encoding="utf-8")
    prior, joint = (
        StanDensity(StanProgram(path), program.data | {"with_likelihood": part}) for part in (0, 1)
    )
    return prior, joint


def check(program: FuzzProgram, seed: int, folder: Path) -> list[str]:
    """Temper a program by one method and compare; return why it is refused, if it is."""
    path = folder / "program.stan"
    path.write_text(program.text, encoding="utf-8")
    method: Variant = "pseudo_extended" if seed % 3 else "joint_tempering"
    single = method == "joint_tempering"
    num = 1 if single else NUM
    try:
        tempered = temper(path, method=method)
    except RewriteError:
        raise
    except HarnessError as error:
        return [f"seed {seed}: {error}"]
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
    return []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int, tmp_path: Path) -> None:
    refused = []
    for seed in range(chunk, PROGRAMS, CHUNKS):
        program = fuzz_program(seed)
        try:
            refused += check(program, seed, tmp_path)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{program.text}")
            raise
    assert len(refused) <= 0.1 * PROGRAMS / CHUNKS, refused
