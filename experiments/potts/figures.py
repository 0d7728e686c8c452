"""Swendsen-Wang beside Gibbs, errors of log Z, energies at the end, and the transition."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.lattice.gibbs import gibbs_sweep
from harness.lattice.graph import torus
from harness.lattice.potts import uniform_states
from harness.lattice.swendsen_wang import swendsen_wang_step
from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .lattices import DISORDERED, ISING, MIXED, ORDERED, POTTS, TITLES
from .tables import PUBLISHED_ROWS, estimates, known, published

_TEN = ListedColormap(["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB",
                       "#222255", "#994F00", "#FFFFFF"])  # fmt: skip


def figures(results: Results) -> list[Figure]:
    """All figures that there are results for."""
    made = [log_z_chart(results), energies(results), transition_figure(results), one_step()]
    return [figure for figure in made if figure is not None]


def _fit(results: Results, key: str) -> Fit | None:
    for cell in results.cells:
        if cell.key == key:
            return results.load(cell, results.replications(cell)[0])
    return None


def log_z_chart(results: Results) -> Figure | None:
    """Errors of log Z of the published table and of ours."""
    found = {name: estimates(results, name) for name in (ISING, POTTS)}
    if all(table.empty for table in found.values()):
        return None
    figure, axes = new_figure(1, 2, width=9.5, height=3.6)
    for axis, (name, table) in zip(axes, found.items(), strict=True):
        exact, column = known(results, name), PUBLISHED_ROWS[name]
        if exact is None or table.empty:
            axis.set(title=f"{TITLES[name]}: no truth at this size")
            continue
        place = np.arange(len(table))
        error = np.hypot(table["of a run"], 0)
        axis.errorbar(table["off"], place + 0.12, xerr=error, fmt="o", color=COLOURS[0],
                      markersize=4, label="ours, error of a run")  # fmt: skip
        paper = published().reindex(table.index)
        axis.errorbar(paper[column] - exact.value, place - 0.12, fmt="s", color=COLOURS[1],
                      xerr=paper[f"{column}_error"].fillna(0), markersize=4,
                      label="published")  # fmt: skip
        axis.axvline(0, color=INK, linewidth=0.8)
        axis.set(title=TITLES[name], xlabel="log Z minus truth, nats", yticks=place)
        axis.set_yticklabels(table.index, fontsize=7)
        axis.invert_yaxis()
    axes[0].legend(fontsize=7, loc="lower left")
    return Figure(
        "log-z",
        "Log Z_P minus the truth, published and ours. Look at annealing with geometric steps on "
        "the right: it ends far below the truth, or near it by a single run that has all of the "
        "weight, and its own error does not tell.",
        "Points with error bars of log Z by method, for an Ising and a Potts lattice.",
        to_image(figure),
    )


def energies(results: Results) -> Figure | None:
    """Shares of agreeing edges: where annealing ends, and where the model is."""
    ends = {
        "Gibbs": _fit(results, "potts-gibbs-ais"),
        "Swendsen-Wang": _fit(results, "potts-sw-ais"),
    }
    nested = _fit(results, "potts-gibbs-ns")
    if nested is None or any(fit is None for fit in ends.values()):
        return None
    figure, (axis,) = new_figure(width=7.0, height=3.2)
    bins = np.linspace(0, 1, 51)
    for colour, (name, fit) in zip(COLOURS[1:], ends.items(), strict=False):
        if fit is not None:
            axis.hist(np.asarray(fit.tree.attrs["ends"]), bins=bins.tolist(), density=True,
                      alpha=0.6, color=colour, label=f"{name} AIS, where runs end")  # fmt: skip
    shares = nested.posterior["agreeing"].to_numpy().ravel()
    axis.hist(shares, bins=bins.tolist(), density=True, histtype="step", color=COLOURS[0],
              linewidth=1.5, label="nested sampling, weighted")  # fmt: skip
    axis.set(xlabel="share of edges that agree", ylabel="density")
    axis.legend(fontsize=7)
    return Figure(
        "energies",
        "With q = 10 and J = 1.477, 16 x 16: shares of edges whose ends agree. Runs of annealing "
        "end in the disordered phase, on the left, while the model is in the ordered one.",
        "Histograms of the share of agreeing edges by method.",
        to_image(figure),
    )


def transition_figure(results: Results) -> Figure | None:
    """Bond density against J and sweeps, the way of nested sampling, and a mixed state."""
    starts, passage = _fit(results, "both-starts"), _fit(results, "passage")
    if starts is None or passage is None:
        return None
    figure, axes = new_figure(2, 2, width=9.0, height=6.6)
    a, b = starts.tree.attrs, passage.tree.attrs
    offsets = np.asarray(a["offsets"])
    axes[0].plot(
        offsets, a["ordered"], "o-", color=COLOURS[1], label="Swendsen-Wang, ordered start"
    )
    axes[0].plot(offsets, a["disordered"], "s-", color=COLOURS[2], label="disordered start")
    axes[0].plot(
        b["offsets"], b["mean"], color=COLOURS[0], label=f"nested sampling, {_side(passage)}"
    )
    axes[0].set(xlabel="J minus the critical J", ylabel="share of edges with a bond")
    sweeps = np.arange(1, np.size(a["trace_ordered"]) + 1)
    axes[1].plot(sweeps, a["trace_ordered"], color=COLOURS[1], linewidth=0.8)
    axes[1].plot(sweeps, a["trace_disordered"], color=COLOURS[2], linewidth=0.8)
    axes[1].set(xlabel="sweep at the critical J", ylabel="share of edges with a bond")
    axes[2].plot(-np.asarray(b["volume"]), b["path"], color=COLOURS[0])
    axes[2].set(xlabel="minus log prior volume", ylabel="share of edges with a bond")
    for axis in axes[:3]:
        _phases(axis)
    axes[0].legend(fontsize=7)
    _lattice(axes[3], np.asarray(b["state"]), 10)
    axes[3].set_title(
        f"a state of nested sampling, {float(b['state_share']):.0%} bonds", fontsize=9
    )
    return Figure(
        "transition",
        f"q = 10 at J = log(1 + √10), {_side(starts)}. Top: Swendsen-Wang keeps the phase of its "
        "start over a range of J, and over all its sweeps; nested sampling has one curve. Bottom: "
        "nested sampling rises through all shares of bonds, also those between the phases, shaded, "
        "where one state holds both. Dashed: the two phases of the infinite lattice at the "
        "transition.",
        "Three curves of bond density, and a lattice of which a part is of one colour.",
        to_image(figure),
    )


def _side(fit: Fit) -> str:
    side = int(fit.tree["constant_data"]["side"].to_numpy())
    return f"{side} x {side}"


def _phases(axis: Axes) -> None:
    axis.axhspan(*MIXED, color="#dddddd", zorder=0)
    for each in (DISORDERED, ORDERED):
        axis.axhline(each, color=INK, linewidth=0.8, linestyle="--")


def _lattice(axis: Axes, state: FloatArray, colours: int) -> None:
    side = round(np.sqrt(state.size))
    axis.imshow(state.reshape(side, side), cmap=_TEN, vmin=0, vmax=max(colours - 1, 1),
                interpolation="nearest")  # fmt: skip
    axis.set(xticks=[], yticks=[], aspect="equal")
    axis.grid(visible=False)


def one_step() -> Figure:
    """Figure 2.2: one sweep of Gibbs sampling and one step of Swendsen-Wang from the same state."""
    side, coupling = 64, 0.85
    graph, rng = torus(side, side), np.random.default_rng(2)
    states = uniform_states(graph, 2, 1, rng)
    for _ in range(60):
        states, _ = swendsen_wang_step(graph, states, 2, coupling, rng)
    swept = states.copy()
    gibbs_sweep(graph, swept, 2, coupling, rng)
    jumped, _ = swendsen_wang_step(graph, states, 2, coupling, rng)
    figure, axes = new_figure(1, 3, width=8.5, height=3.1)
    titles = ("a state", "after a Gibbs sweep", "after a step of Swendsen-Wang")
    for axis, each, title in zip(axes, (states, swept, jumped), titles, strict=True):
        _lattice(axis, each[0].astype(np.float64), 2)
        axis.set_title(title, fontsize=9)
    return Figure(
        "one-step",
        f"Like Figure 2.2: an Ising lattice of {side} x {side} at J = {coupling}, whose size and J "
        "the thesis does not print. A Gibbs sweep moves the borders of regions by a node or so; "
        "Swendsen-Wang colours whole clusters anew.",
        "Three lattices of two colours.",
        to_image(figure),
    )
