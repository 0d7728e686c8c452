"""Whether stanli, which runs pilots, and CmdStan agree on the log density of a program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import cmdstanpy
import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.program import StanProgram
from harness.engine.staging import temporary_folder
from harness.engine.stan_data import plain_data
from harness.errors import SamplingError
from harness.model.density import StanDensity

_POINTS = 3
_ATTEMPTS = 100
_RADIUS = 2.0
"""As in Stan, random starting points are uniform within this radius, with this many attempts."""
_TOLERANCE = 1e-3
"""Solvers differ by their tolerances; a wrong density differs by much more."""

Evaluated = tuple[FloatArray, FloatArray]
"""Log densities, shape (n,), and their gradients, shape (n, D)."""


def disagreement(
    compiled: CompiledProgram,
    program: StanProgram,
    data: Mapping[str, Any],
    *,
    seed: int,
) -> str | None:
    """Say how stanli's log density differs from that of a compiled program, if it does.

    They are compared at three random points of the unconstrained space where stanli's density is
    finite, up to one constant, because a compiled program drops the constants of ``~``.  If there
    are no such points, nothing is reported: stanli then finds no starting point either and says so.

    Parameters
    ----------
    compiled
        Program that CmdStan runs.
    program
        Program that stanli evaluates: the same, or one with the same density.
    data
        Data of both programs.
    seed
        Seed of the points.

    Returns
    -------
    str or None
        What differs, in words; None if they agree.

    Raises
    ------
    ToolchainError, DataError
        As :class:`~harness.model.density.StanDensity`.
    """
    points, ours = _finite_points(StanDensity(program, data), seed)
    if len(points) < _POINTS:
        return None
    try:
        theirs = _by_cmdstan(compiled, data, points)
    except SamplingError as error:
        return f"one point, which only CmdStan rejects ({error})"
    return difference(ours, theirs)


def difference_by_editing(
    program: StanProgram, edited: StanProgram, data: Mapping[str, Any], *, seed: int
) -> str | None:
    """Say how the log density of an edited program differs from the original's, if it does.

    They are compared as in :func:`disagreement`, both by stanli.
    """
    points, ours = _finite_points(StanDensity(program, data), seed)
    if len(points) < _POINTS:
        return None
    density = StanDensity(edited, data)
    values, gradients = [], []
    for point in points:
        try:
            value, gradient = density(point)
        except RuntimeError:
            return "one point, which only the edited program rejects"
        values.append(value)
        gradients.append(gradient)
    return difference(ours, (np.array(values), np.array(gradients)))


def difference(ours: Evaluated, theirs: Evaluated) -> str | None:
    """Say how two evaluations at the same points differ by more than one constant.

    Parameters
    ----------
    ours, theirs
        Those of two engines, or of two programs.
    """
    shift = ours[0] - theirs[0]
    apart = float(np.max(np.abs(shift - shift[0])))
    spread = float(np.ptp(theirs[0]))
    if not apart <= _TOLERANCE * (1 + spread):
        return f"log densities, by {apart:.3g} beyond a constant"
    steepest = float(np.max(np.abs(theirs[1])))
    apart = float(np.max(np.abs(ours[1] - theirs[1])))
    if not apart <= _TOLERANCE * (1 + steepest):
        return f"gradients, by {apart:.3g}"
    return None


def _finite_points(density: StanDensity, seed: int) -> tuple[FloatArray, Evaluated]:
    """Return random points as Stan would start from, and stanli's values there."""
    rng = np.random.default_rng(seed)
    points, values, gradients = [], [], []
    for _ in range(_ATTEMPTS):
        point = rng.uniform(-_RADIUS, _RADIUS, density.dimension)
        try:
            value, gradient = density(point)
        except RuntimeError:  # rejected: the density there is zero
            continue
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            points.append(point)
            values.append(value)
            gradients.append(gradient)
        if len(points) == _POINTS:
            break
    return np.array(points), (np.array(values), np.array(gradients))


def _by_cmdstan(
    compiled: CompiledProgram, data: Mapping[str, Any], points: FloatArray
) -> Evaluated:
    with temporary_folder() as folder:
        given, written = folder / "points.json", folder / "densities.csv"
        cmdstanpy.write_stan_json(str(folder / "data.json"), plain_data(data))
        given.write_text(json.dumps({"params_r": points.tolist()}), encoding="utf-8")
        command = [
            str(compiled.exe),
            *("log_prob", f"unconstrained_params={given}"),
            *("data", f"file={folder / 'data.json'}"),
            *("output", f"file={written}", "sig_figs=17"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise SamplingError(said[-1] if said else f"it ended with {done.returncode}")
        lines = written.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows[1:]])
    return values[:, 0], values[:, 1:]
