"""Chains of (x, beta) that alternate moves of x given beta with exact draws of beta given x.

Gibbs continuous tempering, simulated tempering and path sampling share these chains; they differ in
the values that beta takes and in what they estimate.  The joint density is
b(x) g(beta) exp(-beta Delta(x)), with Delta = log b + log zeta - log gamma.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogMass, draw_inv_temp, inv_temp_log_conditionals
from harness.fit import Fit
from harness.samplers.flat_weights import FlatInvTemp
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Kernel, Moved, StepSizes
from harness.samplers.result import weighted_fit

_BLOCK = 2**20  # numbers in a table of draws by knots, 8 MB


class Draws(NamedTuple):
    """Draws of the chains, axes (chains, draws)."""

    points: FloatArray
    """x, with a last axis D."""
    inv_temp: FloatArray
    """beta, drawn given x."""
    delta: FloatArray
    log_gamma: FloatArray
    acceptance: FloatArray
    """Acceptance probability of the move that led to x."""
    step_size: FloatArray
    """Step size of that move."""
    every_delta: FloatArray
    """Delta also of the draws that thinning leaves out, shape (chains, thin draws)."""


class Tour(NamedTuple):
    """Means over a tour of the path, for each band, from the base to the target."""

    inv_temp: FloatArray
    """Shape (bands,)."""
    delta: FloatArray
    """Shape (bands,)."""


class PathChains:
    """Chains along the path, with a step size for each band of inverse temperatures.

    A step size that suits the target may be far too small or too large for the base.  So the path
    is cut into bands, each with equally many of the intervals between the knots of log g, and a
    move of x given beta uses the step size of the band that beta is in.  The move does not change
    beta, so it leaves the tempered density invariant.

    Parameters
    ----------
    path
        Base and target.
    kernel
        Moves of x.
    log_g
        Knots (beta, log g(beta)), shape (K, 2); they may be changed later.
    ladder
        Whether beta takes only the values of the knots.
    bands
        Number of bands.
    step_size
        Step size that warm-up starts from.
    starts
        Starting points of chains, shape (chains, D); None for draws of the base.
    chains
        Number of chains.
    rng
        Source of all randomness.

    Raises
    ------
    DataError
        If a number is out of range, the starting points have the wrong shape, or one of them lies
        outside the target's support.
    """

    def __init__(
        self,
        path: GeometricPath,
        kernel: Kernel,
        *,
        log_g: FloatArray,
        ladder: bool,
        bands: int,
        step_size: float,
        starts: FloatArray | None,
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        if bands < 1 or chains < 1:
            raise DataError(f"this needs one chain and one band or more; got {chains} and {bands}")
        if starts is not None and len(starts) != chains:
            raise DataError(f"{chains} chains need as many starting points; got {len(starts)}")
        inv_temp_log_conditionals(0.0, log_g, ladder=ladder)  # raises an error for unusable knots
        self.path, self.kernel, self.rng = path, kernel, rng
        self.log_g, self.ladder, self.bands = log_g, ladder, bands
        self.steps = StepSizes(bands, step_size, kernel.target_acceptance)
        self.state = path.start_at_base(rng, chains) if starts is None else path.start(starts)
        self.inv_temp = self._drawn()

    def tour(self, iterations: int) -> Tour:
        """Take all chains up and down the path, band by band, to tune every band's step size.

        Chains do not choose their inverse temperatures here, so every band gets its turn, even one
        that g would rarely let them visit.
        """
        chains, period = len(self.inv_temp), 2 * self.bands
        total = np.zeros((3, self.bands))
        knot = self.log_g[:, 0]
        for iteration in range(iterations):
            phase = (np.arange(chains) * period // chains + iteration) % period
            band = np.minimum(phase, period - 1 - phase)
            place = (band + self.rng.random(chains)) / self.bands
            self.inv_temp = np.interp(place, np.linspace(0, 1, len(knot)), knot)
            self._move(self.band(self.inv_temp), learn=True)
            if 2 * iteration >= iterations:  # after the first half, starting points are forgotten
                number = np.bincount(band, minlength=self.bands)
                sums = [
                    np.bincount(band, weights=each, minlength=self.bands)
                    for each in (self.inv_temp, self.path.delta(self.state))
                ]
                total += np.array([number, *sums])
        self.inv_temp = self._drawn()
        seen = total[0] > 0
        return Tour(total[1, seen] / total[0, seen], total[2, seen] / total[0, seen])

    def warm_up(self, iterations: int, flat: FlatInvTemp | None = None) -> FloatArray:
        """Run chains and tune their step sizes; return Delta, shape (chains, iterations).

        Parameters
        ----------
        iterations
            Number of iterations.
        flat
            If given, a log g that learns to make beta's marginal density flat; the chains follow
            it, and keep it as it is in the end.
        """
        delta = np.empty((iterations, len(self.inv_temp)))
        for iteration in range(iterations):
            self._move(self.band(self.inv_temp), learn=True)
            delta[iteration] = self.path.delta(self.state)
            if flat is not None:
                flat.learn(delta[iteration])
                self.log_g = flat.log_g
            self.inv_temp = self._drawn()
        return delta.T

    def sample(self, draws: int, thin: int = 1) -> Draws:
        """Run chains with the step sizes that warm-up has tuned, and keep every ``thin``-th draw.

        Raises
        ------
        DataError
            If the number of draws is not a multiple of ``thin``.
        """
        kept = kept_draws(draws, thin)
        chains, dimension = self.state.points.shape
        points = np.empty((chains, kept, dimension))
        inv_temp, delta, log_gamma, acceptance, step_size = np.empty((5, chains, kept))
        every_delta = np.empty((chains, draws))
        for iteration in range(draws):
            band = self.band(self.inv_temp)
            moved = self._move(band, learn=False)
            self.inv_temp = self._drawn()
            every_delta[:, iteration] = self.path.delta(self.state)
            draw, others = divmod(iteration + 1, thin)
            if others:
                continue
            draw -= 1
            points[:, draw] = self.state.points
            inv_temp[:, draw] = self.inv_temp
            delta[:, draw] = every_delta[:, iteration]
            log_gamma[:, draw] = self.state.log_gamma
            acceptance[:, draw] = moved.acceptance
            step_size[:, draw] = self.steps.tuned(band)
        return Draws(points, inv_temp, delta, log_gamma, acceptance, step_size, every_delta)

    def band(self, inv_temp: FloatArray) -> npt.NDArray[np.intp]:
        """Return the band of each inverse temperature, counted from 0 at the base."""
        knot = self.log_g[:, 0]
        place = np.interp(inv_temp, knot, np.linspace(0, self.bands, len(knot)))
        return np.minimum(place.astype(np.intp), self.bands - 1)

    def _move(self, band: npt.NDArray[np.intp], *, learn: bool) -> Moved:
        step = self.steps.current(band) if learn else self.steps.tuned(band)
        moved = self.kernel.move(self.path, self.state, self.inv_temp, step, self.rng)
        if learn:
            self.steps.learn(band, moved.acceptance)
        self.state = moved.state
        return moved

    def _drawn(self) -> FloatArray:
        delta = self.path.delta(self.state)
        return draw_inv_temp(delta, self.log_g, self.rng, ladder=self.ladder)


def end_weights(
    every_delta: FloatArray, kept: int, log_g: FloatArray, *, ladder: bool
) -> dict[str, FloatArray]:
    """Return the weights of kept draws at both ends of the path, and their means over blocks.

    Parameters
    ----------
    every_delta
        Delta of all draws, shape (chains, draws).
    kept
        How many draws of each chain are kept, the last one of as many equal blocks.
    log_g, ladder
        As in :func:`harness.evidence.inv_temp_log_conditionals`.

    Returns
    -------
    dict
        ``log_w1`` and ``log_w0``, shape (chains, kept).  If draws are left out, there are also
        ``log_mean_w1`` and ``log_mean_w0``, logs of the mean weights of blocks, so that log Z makes
        use of all draws.
    """
    chains, draws = every_delta.shape
    found = {}
    for name, every in zip(
        ("w1", "w0"), _end_log_weights(every_delta, log_g, ladder=ladder), strict=True
    ):
        blocks = every.reshape(chains, kept, draws // kept)
        found[f"log_{name}"] = blocks[..., -1].copy()
        if kept < draws:
            mean = np.logaddexp.reduce(blocks, axis=-1) - np.log(draws // kept)
            found[f"log_mean_{name}"] = np.asarray(mean, dtype=np.float64)
    return found


def kept_draws(draws: int, thin: int) -> int:
    """Return how many of a chain's draws are kept if every ``thin``-th is.

    Raises
    ------
    DataError
        If the number of draws is not a multiple of ``thin``.
    """
    if thin < 1 or draws % thin:
        raise DataError(f"{draws} draws cannot be thinned to every {thin}th: give a multiple")
    return draws // thin


def path_fit(
    method: str,
    runs: PathChains,
    kept: Draws,
    base_mass: LogMass,
    *,
    settings: Mapping[str, Any],
    seed: int,
    found: Mapping[str, Any],
) -> Fit:
    """Return a fit of draws along the path, in the same layout as one of continuous tempering.

    Parameters
    ----------
    method, settings, seed, found
        The same as for :func:`harness.samplers.result.weighted_fit`; settings of the path and of
        the chains are added.
    runs, kept
        The chains and their draws.
    base_mass
        Share of the base's mass that the chains reach.
    """
    chains, draws = kept.delta.shape
    weights = end_weights(kept.every_delta, draws, runs.log_g, ladder=runs.ladder)
    return weighted_fit(
        method,
        runs.path,
        kept.points,
        {"inv_temp": kept.inv_temp, "delta": kept.delta, **weights},
        settings={
            **runs.path.base_settings(base_mass),
            "log_g": runs.log_g.tolist(),
            "ladder": runs.ladder,
            "kernel": repr(runs.kernel),
            "bands": runs.bands,
            "chains": chains,
            "draws": draws,
            **settings,
        },
        seed=seed,
        stats={
            "lp": kept.log_gamma,
            "acceptance_rate": kept.acceptance,
            "step_size": kept.step_size,
        },
        found={"band_step_size": runs.steps.tuned(np.arange(runs.bands)), **found},
    )


def _end_log_weights(
    delta: FloatArray, log_g: FloatArray, *, ladder: bool
) -> tuple[FloatArray, FloatArray]:
    """Return log w1 and log w0 of draws, computed in blocks because there may be many knots."""
    blocks = np.array_split(delta.ravel(), -(-delta.size * len(log_g) // _BLOCK))
    pairs = [inv_temp_log_conditionals(block, log_g, ladder=ladder) for block in blocks]
    log_w1, log_w0 = (
        np.concatenate(each).reshape(delta.shape) for each in zip(*pairs, strict=True)
    )
    return log_w1, log_w0
