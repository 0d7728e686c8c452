"""Figures of a fit's path between base and target: inverse temperatures, weights, log Z."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from matplotlib.ticker import MaxNLocator

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import base_scores, largest_base_score, outer_tenths
from harness.errors import DataError
from harness.fit import Fit, TemperedDraws
from harness.plan.spec import Figure
from harness.report.style import (
    BAD,
    BAND,
    COLOURS,
    INK,
    column_figure,
    method_style,
    to_image,
)

_BINS = 40
_MOST_CURVES = 5
_DRAWS_OF_TRACE = 1000
_FEWEST_DRAWS = 20
_PARTS = 12


def path_figures(fit: Fit) -> list[Figure]:
    """Draw the figures of the path between base and target that a fit has data for, if any."""
    extended = fit.extended
    if extended is None or extended.sizes["draw"] < _FEWEST_DRAWS:
        return []
    colour = method_style(fit.tree.attrs["method"]).colour
    try:
        tempered = fit.tempered
    except DataError:
        tempered = None
    figures = []
    if "inv_temp" in extended:
        sampled = extended["inv_temp"].transpose("chain", "draw", ...).to_numpy()
        if np.ptp(sampled, axis=1).any():  # inverse temperatures were not fixed
            figures.append(inv_temp_density(sampled))
            ends = (0.1, 0.9) if tempered is None else outer_tenths(tempered)
            figures.append(inv_temp_traces(sampled, ends))
    if fit.weighting == "across draws" and np.ptp(fit.drawn_log_weight):
        figures.append(target_weights(fit.drawn_log_weight, colour))
    elif fit.pseudo_samples > 1:
        figures.append(pseudo_sample_weights(fit.log_weight, colour))
    if tempered is not None:
        score = base_scores(fit, tempered)
        if score is not None:
            figures.append(base_moments(score, colour))
        if tempered.normalised_base:
            figures.append(running_log_evidence(tempered, colour))
    return figures


def inv_temp_density(inv_temp: FloatArray) -> Figure:
    """Draw densities of inverse temperatures (chains, draws[, N]), one per pseudo-sample."""
    curves = inv_temp.reshape(*inv_temp.shape[:2], -1)
    count = curves.shape[-1]
    figure, (axis,) = column_figure()
    bins = np.linspace(0, 1, _BINS + 1).tolist()
    for index in range(count):
        axis.hist(
            curves[..., index].ravel(),
            bins,
            density=True,
            histtype="step",
            linewidth=1.2,
            color=COLOURS[index % len(COLOURS)],
            label=f"pseudo-sample {index + 1}",
        )
    if 1 < count <= _MOST_CURVES:
        axis.legend(fontsize=7)
    axis.set(xlabel="inverse temperature β (0 base, 1 target)", ylabel="density", xlim=(0, 1))
    look = (
        "Pseudo-samples are exchangeable, so the curves should coincide; mass near 0 connects the "
        "modes."
        if count > 1
        else "There should be mass everywhere between base and target: the chain cannot cross a "
        "gap."
    )
    return Figure(
        "inv-temp-density",
        f"Density of the inverse temperature{' of each pseudo-sample' if count > 1 else ''} over "
        f"all chains. {look}",
        "Histogram of the inverse temperature.",
        to_image(figure),
    )


def inv_temp_traces(inv_temp: FloatArray, ends: tuple[float, float]) -> Figure:
    """Draw the first chain's inverse temperature, and count the round trips of all chains."""
    lower, upper = ends
    line = inv_temp.reshape(*inv_temp.shape[:2], -1)[0, :_DRAWS_OF_TRACE, 0]
    trips = evidence.round_trips(inv_temp, lower=lower, upper=upper)
    figure, (axis,) = column_figure()
    for bottom, top in ((0, lower), (upper, 1)):
        axis.axhspan(bottom, top, color=BAND, linewidth=0)
    axis.plot(np.arange(len(line)), line, color=COLOURS[0], linewidth=0.7)
    # Wider than [0, 1], so that a chain that stays at an end is visible.
    axis.set(xlabel="draw", ylabel="inverse temperature β", ylim=(-0.03, 1.03))
    each = "chain" if inv_temp.ndim == 2 else "pseudo-sample of a chain"
    spread = f"{trips.min():,} to {trips.max():,}" if np.ptp(trips) else f"{trips.max():,}"
    which = "the first chain" if inv_temp.ndim == 2 else "the first chain's first pseudo-sample"
    return Figure(
        "inv-temp-traces",
        f"Inverse temperature in the first {len(line):,} draws of {which}. A round trip goes "
        "from one grey band, at the base, to the other, at the target, and back; only round trips "
        f"lead to other modes. All draws: {spread} round trips per {each}.",
        "Trace of the inverse temperature with the outer tenths of its range in grey.",
        to_image(figure),
    )


def target_weights(log_w1: FloatArray, colour: str) -> Figure:
    """Draw the distribution of the weights that turn the draws into draws of the target."""
    finite = log_w1[np.isfinite(log_w1)]
    weight = evidence.normalised_weights(finite)
    relative = np.log10(np.maximum(weight * weight.size, 1e-12))
    k = evidence.pareto_k(log_w1)
    figure, (axis,) = column_figure()
    axis.hist(relative, _BINS, color=colour, histtype="stepfilled")
    axis.axvline(0, color=INK, linewidth=0.8, linestyle=":")
    axis.set(yscale="log", xlabel="log₁₀ of weight over mean weight", ylabel="draws")
    axis.minorticks_off()
    axis.yaxis.set_major_formatter("{x:,.0f}")
    said = "cannot be estimated" if math.isnan(k) else f"is {k:.2f}"
    lost = log_w1.size - finite.size
    none = (
        f" {lost / log_w1.size:.0%} of the draws have no weight and are left out." if lost else ""
    )
    return Figure(
        "weights",
        f"Weights of the draws, relative to their mean (dotted).{none} If a few draws lie far to "
        "the right of all others, the estimates depend on them alone. Pareto k of the right tail "
        f"{said}: up to 0.7 errors are reliable, from 1 on they are unknown.",
        "Histogram of the logarithm of the weights of the draws.",
        to_image(figure),
    )


def pseudo_sample_weights(log_weight: FloatArray, colour: str) -> Figure:
    """Draw how evenly the pseudo-samples of a draw share their weight, over all draws."""
    effective = evidence.effective_pseudo_samples(log_weight)
    count = log_weight.shape[-1]
    figure, (axis,) = column_figure()
    bins = np.linspace(1, count, _BINS + 1).tolist()
    axis.hist(effective.ravel(), bins, color=colour, histtype="stepfilled")
    axis.set(yscale="log", xlabel="effective pseudo-samples in a draw", ylabel="draws")
    axis.minorticks_off()
    axis.yaxis.set_major_formatter("{x:,.0f}")
    return Figure(
        "weights",
        f"Effective number of pseudo-samples, 1 / Σ w², in each draw, between 1 and {count}; "
        f"{effective.mean():.2f} on average. At 1 a single pseudo-sample has all of the weight. "
        "Weights are only compared within a draw, so no draw can dominate.",
        "Histogram of the effective number of pseudo-samples.",
        to_image(figure),
    )


def base_moments(score: FloatArray, colour: str) -> Figure:
    """Compare means under the base with the base's own, coordinate by coordinate."""
    limit = largest_base_score(score.size)
    figure, (axis,) = column_figure()
    axis.axhspan(0, limit, color=BAND, linewidth=0)
    fine = score <= limit
    place = np.arange(score.size)
    axis.plot(place[fine], score[fine], "o", color=colour, markersize=5)
    axis.plot(place[~fine], score[~fine], "X", color=BAD, markersize=6)
    axis.set(
        xlabel="coordinate",
        ylabel="distance, standard errors",
        ylim=(0, 1.1 * max(limit, float(score.max()))),
    )
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return Figure(
        "base-moments",
        "Means under the base, estimated from the run, against the base's known means. "
        f"All should lie in the grey band, below {limit:.1f} standard errors; a cross above it "
        "means that the draws do not follow the path.",
        f"Distances of base means in {score.size} coordinates; the largest is {score.max():.1f} "
        "standard errors.",
        to_image(figure),
    )


def running_log_evidence(tempered: TemperedDraws, colour: str) -> Figure:
    """Draw the estimate of log Z from growing parts of the draws, with two standard errors."""
    draws = tempered.delta.shape[1]
    # The first draws may all lie where the target's density is zero.
    part = np.unique(np.linspace(max(_FEWEST_DRAWS, draws // _PARTS), draws, _PARTS).astype(int))
    part = part[[bool(np.isfinite(tempered.log_w1[:, :count]).any()) for count in part]]
    estimates = np.array([_first(tempered, count).log_evidence() for count in part])
    value, error = estimates.T
    figure, (axis,) = column_figure()
    axis.fill_between(part, value - 2 * error, value + 2 * error, color=colour, alpha=0.25, lw=0)
    axis.plot(part, value, "o-", color=colour, markersize=3, linewidth=1.2)
    axis.axhline(value[-1], color=INK, linewidth=0.8, linestyle=":")
    axis.set(xlabel="draws per chain", ylabel="log Z (nats)")
    return Figure(
        "log-evidence",
        f"Estimate of log Z from the first draws of every chain, with two standard errors; "
        f"{value[-1]:.2f} ± {error[-1]:.2f} from all (dotted). It should settle down, and the "
        "dotted line should stay inside the band.",
        f"Running estimate of log Z, which ends at {value[-1]:.2f}.",
        to_image(figure),
    )


def _first(tempered: TemperedDraws, draws: int) -> TemperedDraws:
    """Return the first draws of every chain."""
    names = ("delta", "inv_temp", "log_weight", "log_w1", "log_w0")
    return replace(tempered, **{name: getattr(tempered, name)[:, :draws] for name in names})
