"""Figures of a fit's draws of the target: traces, ranks, growth of the effective sample size.

References
----------
Säilynoja, T., Bürkner, P.-C. and Vehtari, A. (2022). Graphical test for discrete uniformity and
its applications in goodness-of-fit evaluation and multiple sample comparison. Statistics and
Computing 32, 32.

Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021).
Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of
MCMC. Bayesian Analysis 16(2), 667-718.
"""

from __future__ import annotations

import functools

import numpy as np
from arviz_stats.base import array_stats

from harness.arrays import FloatArray
from harness.diagnosis import EFFECTIVE_WARNING
from harness.plan.spec import Figure
from harness.report.columns import Columns
from harness.report.style import BAND, COLOURS, INK, column_figure, to_image

# A vector figure with more points than this, over all lines, would be large.
_POINTS_OF_TRACES = 5000
_MOST_CHAINS = 8
_RANK_DRAWS = 1000
_RANK_POINTS = 50
_RANK_PROBABILITY = 0.94  # ArviZ's default
_FEWEST_FOR_ESS = 4
_PARTS = 6


def draw_figures(columns: Columns, *, chains_interact: bool = False) -> list[Figure]:
    """Draw figures of the draws, for the coordinates with the largest R-hat.

    Parameters
    ----------
    columns
        A few coordinates, the worst first.
    chains_interact
        Whether chains depend on each other: then ranks and effective sample sizes, which take them
        as independent, are left out.
    """
    figures = [traces(columns)]
    if chains_interact:
        return figures
    if columns.values.shape[1] >= 2 * _RANK_POINTS:
        figures.append(ranks(columns.halves()))
    if columns.values.shape[1] >= _PARTS * _FEWEST_FOR_ESS:
        figures.append(growth_of_ess(columns))
    return figures


def traces(columns: Columns) -> Figure:
    """Draw each chain's values in the order of the draws."""
    chains, draws, count = columns.values.shape
    shown = min(chains, _MOST_CHAINS)
    step = max(1, -(-draws * shown * count // _POINTS_OF_TRACES))
    figure, axes = column_figure(count, height=0.6 + 1.3 * count)
    place = np.arange(0, draws, step)
    for index, (axis, name) in enumerate(zip(axes, columns.names, strict=True)):
        for chain in range(shown):
            axis.plot(
                place,
                columns.values[chain, ::step, index],
                color=COLOURS[chain % len(COLOURS)],
                linewidth=0.7,
                alpha=0.75,
            )
        axis.set_ylabel(name)
        axis.tick_params(labelbottom=axis is axes[-1])
    axes[-1].set_xlabel("draw")
    every = "Every draw" if step == 1 else f"One draw in {step}"
    of = "" if shown == chains else f" of the first {shown} of {chains} chains"
    return Figure(
        "traces",
        f"{every}{of}, one colour per chain, of {_what(columns)}. Look for chains that stay at "
        "different heights, and for long stretches in one place.",
        f"Traces of {', '.join(columns.names)}, one line per chain.",
        to_image(figure),
    )


def ranks(columns: Columns) -> Figure:
    """Draw the distribution of each chain's ranks among all draws, minus the uniform one."""
    step = -(-columns.values.shape[1] // _RANK_DRAWS)
    values = columns.values[:, ::step]
    chains, draws, count = values.shape
    place = np.arange(1, _RANK_POINTS) / _RANK_POINTS
    band = rank_band(chains, draws)
    differences = [rank_differences(values[..., index]) for index in range(count)]
    highest = 1.1 * max(band.max(), *(np.abs(each).max() for each in differences))
    figure, axes = column_figure(1, count, height=2.4, title=True)
    for index, (axis, name) in enumerate(zip(axes, columns.names, strict=True)):
        axis.fill_between(place, -band, band, color=BAND, linewidth=0)
        for chain, line in enumerate(differences[index]):
            axis.plot(place, line, color=COLOURS[chain % len(COLOURS)], linewidth=1)
        axis.set_title(name, fontsize=9, color=INK)
        axis.set(xlabel="fractional rank", xticks=[0, 0.5, 1], ylim=(-highest, highest))
        axis.tick_params(labelleft=axis is axes[0])
    axes[0].set_ylabel("ECDF less uniform")
    thinned = "" if step == 1 else f", taking one draw in {step}"
    return Figure(
        "ranks",
        f"Where each chain's draws rank among those of all chains{thinned}: the distribution of "
        "the ranks minus the uniform distribution. With independent draws from one distribution, "
        f"all lines stay in the grey band with probability {_RANK_PROBABILITY:.0%}; a line far "
        "outside it is a chain that disagrees with the others or moves slowly. A single chain is "
        "shown as its two halves.",
        f"Rank plots of {', '.join(columns.names)} with a simultaneous band.",
        to_image(figure),
    )


def rank_differences(values: FloatArray) -> FloatArray:
    """Return the distribution of the chains' fractional ranks, minus the uniform one, on a grid.

    Parameters
    ----------
    values
        Shape (chains, draws).

    Returns
    -------
    FloatArray
        Shape (chains, 49): at 1/50, ..., 49/50.
    """
    rank = array_stats.compute_ranks(values, axis=None, relative=False).reshape(values.shape)
    point = np.arange(1, _RANK_POINTS)
    below = rank[..., None] * _RANK_POINTS <= point * values.size
    difference: FloatArray = below.mean(axis=1) - point / _RANK_POINTS
    return difference


@functools.cache
def rank_band(chains: int, draws: int) -> FloatArray:
    """Return the half-width of the simultaneous band of :func:`rank_differences`.

    The band is that of independent draws.  The number of a chain's draws below a pooled quantile p
    is hypergeometric.  Scaled by its standard deviation, the differences of L chains are Brownian
    bridges that sum to zero, and their largest value is simulated (as Säilynoja et al. 2022,
    section 3, simulate exact counts).

    Parameters
    ----------
    chains, draws
        Two chains or more, and draws in each.

    Returns
    -------
    FloatArray
        Shape (49,).
    """
    rng = np.random.default_rng(20220301)
    place = np.arange(1, _RANK_POINTS) / _RANK_POINTS
    steps = rng.normal(scale=_RANK_POINTS**-0.5, size=(1000, chains, _RANK_POINTS))
    walk = steps.cumsum(axis=-1)
    bridge = walk[..., :-1] - place * walk[..., -1:]
    bridge -= bridge.mean(axis=1, keepdims=True)
    sd = np.sqrt(place * (1 - place) * (1 - 1 / chains))
    largest = np.abs(bridge / sd).max(axis=(1, 2))
    total = chains * draws
    band: FloatArray = (
        np.quantile(largest, _RANK_PROBABILITY) * sd * np.sqrt(total / (total - 1) / draws)
    )
    return band


def growth_of_ess(columns: Columns) -> Figure:
    """Draw the effective sample sizes of growing parts of the draws."""
    chains, draws, _ = columns.values.shape
    part = np.unique(np.linspace(draws / _PARTS, draws, _PARTS).astype(int))
    figure, (axis,) = column_figure()
    for kind, line in (("bulk", "-"), ("tail", "--")):
        sizes = np.array([_ess(columns.values[:, :count], kind) for count in part])
        for index, name in enumerate(columns.names):
            axis.plot(
                part * chains,
                sizes[:, index],
                line,
                color=COLOURS[index % len(COLOURS)],
                marker=".",
                linewidth=1.2,
                label=f"{name}, {kind}",
            )
    axis.axhline(EFFECTIVE_WARNING * chains, color=INK, linewidth=0.8, linestyle=":")
    axis.set(xlabel="draws, all chains", ylabel="effective sample size", ylim=(0, None))
    axis.legend(fontsize=7)
    return Figure(
        "ess",
        "Effective sample size of growing parts of the draws, in their bulk and in their tails. "
        "It should grow in proportion to the draws; if it stays flat, chains disagree or do not "
        f"move. Above the dotted line, {EFFECTIVE_WARNING} per chain, you can rely on errors.",
        f"Effective sample size of {', '.join(columns.names)} against the number of draws.",
        to_image(figure),
    )


def _ess(values: FloatArray, kind: str) -> FloatArray:
    prob = (0.05, 0.95) if kind == "tail" else None
    with np.errstate(divide="ignore", invalid="ignore"):
        size = array_stats.ess(values, chain_axis=0, draw_axis=1, method=kind, prob=prob)
    return np.asarray(size, dtype=np.float64)


def _what(columns: Columns) -> str:
    names = ", ".join(columns.names)
    if len(columns.names) == columns.total:
        return names
    return f"{names} (the ones with the largest R-hat of {columns.total} coordinates)"
