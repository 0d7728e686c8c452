"""What is measured of one run against the truth of its target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter

import numpy as np
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose, outer_tenths
from harness.errors import DataError
from harness.evidence import Estimate, LogEvidence
from harness.fit import Fit
from harness.fit.tempered import PSEUDO_SAMPLE
from harness.model import Model
from harness.plan.spec import Cell
from harness.user.modes import fewest_effective

from .distance import MOST_DRAWS, distance
from .right import OUTCOMES, Answer, log_z_answer, mean_answer, outcome, probability_answer
from .velocities import periods

_SQUARED = "_squared"
_EXACT_SEED = 20_261_122


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Errors of log Z, modes and expectations, what was said, and how replicas travelled."""
    return measured(cell.model, fit)


def measured(model: Model, fit: Fit) -> dict[str, float]:
    """Measure a fit of a target.

    Parameters
    ----------
    model
        The target with its truth.
    fit
        A fit with the target's own parameters in its posterior.

    Returns
    -------
    dict
        NaN for what is not known, or what the fit does not report.  ``outcome`` is the place of
        the run in :data:`.right.OUTCOMES`.
    """
    effective = fewest_effective(fit)
    own, log_z = _own_log_z(fit), _log_z(model, fit)
    modes = list(_modes(model, fit, effective))
    means = list(_means(model, fit))
    answers = [*([] if log_z is None else [log_z]), *modes, *means]
    problem = any(each.severity == Severity.PROBLEM for each in diagnose(fit))
    attrs = fit.tree.attrs
    evaluations = float(attrs.get("evaluations", fit.gradients))
    return {
        "outcome": float(OUTCOMES.index(outcome(answers, problem=problem))),
        "judged": float(len(answers)),
        "problem": float(problem),
        "log_z": own.value,
        "log_z_error": math.nan if log_z is None else log_z.error,
        "log_z_mcse": own.mcse,
        "log_z_z": math.nan if log_z is None else log_z.z,
        "mode_error": _largest(each.error for each in modes),
        "mode_z": _largest(each.z for each in modes),
        "coverage": _coverage(model, fit),
        "mean_error": _largest(each.error for each in means),
        "mean_z": _largest(each.z for each in means),
        "scaled_error": _root_mean_square(model, modes, means),
        "effective": effective,
        "evaluations": evaluations,
        **_distances(model, fit, effective),
        **_travel(fit, evaluations),
        **periods(fit),
    }


def _own_log_z(fit: Fit) -> LogEvidence:
    """Return the estimate of log Z; NaN if there is none."""
    try:
        return fit.log_evidence
    except DataError:
        return LogEvidence(math.nan, math.nan)


def _log_z(model: Model, fit: Fit) -> Answer | None:
    if model.truth.find_log_evidence is None:
        return None
    try:
        found = fit.log_evidence
    except DataError:
        return None
    truth = model.truth.log_evidence
    return log_z_answer(found.value - truth.value, found.mcse, truth.error)


def _modes(model: Model, fit: Fit, effective: float) -> Iterator[Answer]:
    test = model.truth.mode_test
    if test is None:
        return
    found = estimated(fit, test.happens)
    true = test.probabilities
    rows = zip(found.value, found.mcse, true.value, true.error, strict=True)
    for value, mcse, truth, error in rows:
        # The error that the table of modes gives a mode with this share of the draws.
        own = evidence.probability_error(float(value), float(mcse), effective)
        yield probability_answer(float(value), own, float(truth), float(error), effective)


def _means(model: Model, fit: Fit) -> Iterator[Answer]:
    """Yield the known expectations of parameters and their squares, in standard deviations."""
    if model.truth.find_expectations is None:
        return
    for name, true in model.truth.expectations.items():
        f = function_of(name, fit)
        if f is None:
            continue
        found = estimated(fit, f)
        spread = _spread(model, fit, name, f)
        parts = (found.value, found.mcse, true.value, true.error, spread)
        for value, mcse, truth, error, sd in zip(*map(np.ravel, parts), strict=True):
            if sd > 0:
                yield mean_answer(float((value - truth) / sd), float(mcse / sd), float(error / sd))


def function_of(name: str, fit: Fit) -> Callable[[xr.Dataset], xr.DataArray] | None:
    """Return the function whose expectation has a name; None if the draws do not give it."""
    if name in fit.posterior:
        return itemgetter(name)
    stem = name.removesuffix(_SQUARED)
    if stem != name and stem in fit.posterior:
        return lambda draws: draws[stem] ** 2
    return None


def estimated(fit: Fit, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
    """Estimate an expectation from the raw draws, or from the final ones if those lack a name.

    The function may know the axes (chain, draw, ...) only.
    """

    def of_each(draws: xr.Dataset) -> xr.DataArray:
        if PSEUDO_SAMPLE not in draws.dims:
            return f(draws.transpose("chain", "draw", ...))
        number = draws.sizes[PSEUDO_SAMPLE]
        parts = [of_each(draws.isel({PSEUDO_SAMPLE: index})) for index in range(number)]
        return xr.concat(parts, dim=PSEUDO_SAMPLE)

    try:
        return fit.expectation(of_each)
    except KeyError:
        values = of_each(fit.posterior).transpose("chain", "draw", ...)
        return evidence.expectation(values.to_numpy().astype(np.float64))


def _spread(
    model: Model, fit: Fit, name: str, f: Callable[[xr.Dataset], xr.DataArray]
) -> FloatArray:
    """Return posterior standard deviations: the true ones, exact draws' or, if need be, the fit's.

    A fit that misses a mode has too small ones, which make its errors larger than they are.
    """
    known = model.truth.expectations
    if f"{name}{_SQUARED}" in known:
        squared = known[f"{name}{_SQUARED}"].value - np.square(known[name].value)
        return np.sqrt(np.maximum(squared, 0))
    draws = fit.posterior
    if model.truth.draw is not None and name.removesuffix(_SQUARED) in model.parameters:
        draws = _dataset(model, fit, _exact(_Key(model))[0])
    spread: FloatArray = f(draws).std(["chain", "draw"]).to_numpy()
    return spread


def _dataset(model: Model, fit: Fit, flat: FloatArray) -> xr.Dataset:
    """Return exact draws, shape (n, D), as parameters with the shapes that a fit has."""
    parameters, begin = {}, 0
    for name in model.parameters:
        like = fit.posterior[name].transpose("chain", "draw", ...)
        size = int(np.prod(like.shape[2:], dtype=np.intp))
        values = flat[:, begin : begin + size].reshape(1, len(flat), *like.shape[2:])
        parameters[name] = (like.dims, values)
        begin += size
    return xr.Dataset(parameters)


def _root_mean_square(model: Model, modes: list[Answer], means: list[Answer]) -> float:
    """Return the root mean square of errors, each in standard deviations of one draw."""
    squared = [each.error**2 for each in means]
    if modes and model.truth.mode_test is not None:
        p = model.truth.mode_test.probabilities.value
        squared += [each.error**2 / (q * (1 - q)) for each, q in zip(modes, p, strict=True)]
    return math.sqrt(np.mean(squared)) if squared else math.nan


def _coverage(model: Model, fit: Fit) -> float:
    """Entropy of the estimated mode probabilities over that of the true ones."""
    test = model.truth.mode_test
    if test is None or not test.exclusive:
        return math.nan
    entropies = [
        -np.sum(p[p > 0] * np.log(p[p > 0]))
        for p in (np.clip(estimated(fit, test.happens).value, 0, 1), test.probabilities.value)
    ]
    return float(entropies[0] / entropies[1])


def _distances(model: Model, fit: Fit, effective: float) -> dict[str, float]:
    if model.truth.draw is None:
        return {"distance": math.nan, "exact_distance": math.nan}
    exact, other = _exact(_Key(model))
    found = distance(flat_draws(model, fit), exact, other, effective=effective)
    return {"distance": found.value, "exact_distance": found.yardstick}


def flat_draws(model: Model, fit: Fit) -> FloatArray:
    """Return a fit's draws of the parameters one after another, shape (chains * draws, D)."""
    parts = [
        fit.posterior[name].transpose("chain", "draw", ...).to_numpy().astype(np.float64)
        for name in model.parameters
    ]
    return np.concatenate(
        [part.reshape(part.shape[0] * part.shape[1], -1) for part in parts], axis=1
    )


class _Key:
    """A model by its name, to remember exact draws by."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __hash__(self) -> int:
        return hash(self.model.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.model.name == self.model.name


@lru_cache(maxsize=64)
def _exact(key: _Key) -> tuple[FloatArray, FloatArray]:
    draw = key.model.truth.draw
    assert draw is not None  # noqa: S101
    rng = np.random.default_rng(_EXACT_SEED)
    return draw(MOST_DRAWS, rng), draw(MOST_DRAWS, rng)


def _travel(fit: Fit, evaluations: float) -> dict[str, float]:
    """Round trips between reference and target, per 1,000 evaluations, and the barrier."""
    attrs = fit.tree.attrs
    nothing = {"trips": math.nan, "barrier": math.nan}
    if "round_trips" in attrs:
        ends = ["", *(["_2"] if "round_trips_2" in attrs else [])]
        trips = sum(float(np.sum(attrs[f"round_trips{of}"])) for of in ends)
        barrier = sum(float(attrs[f"communication_barrier{of}"]) for of in ends)
        return {"trips": 1000 * trips / evaluations, "barrier": barrier}
    try:
        tempered = fit.tempered
        lower, upper = outer_tenths(tempered)
        counted = evidence.round_trips(tempered.inv_temp, lower=lower, upper=upper)
    except DataError:
        return nothing
    return nothing | {"trips": 1000 * float(np.sum(counted)) / evaluations}


def _largest(values: Iterator[float]) -> float:
    """Return the value of the largest size, with its sign; NaN if there is none."""
    return max(values, key=abs, default=math.nan)
