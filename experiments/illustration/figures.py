"""Figures of the illustrations: 1 and 6 of the one paper, the panels of Figure 1 of the other."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from harness.arrays import FloatArray
from harness.evidence import normalised_weights
from harness.fit import Fit
from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .targets import MIXTURES, bases, extended_density, potential, trajectory


def figures(results: Results) -> list[Figure]:
    """Figures 1 and 6 of the one paper, Figure 1 of the other."""
    cells = {cell.key: cell for cell in results.cells}
    found = []
    for half, draw in (("pe", _pseudo_extended), ("ct", _tempering)):
        pair = [cells.get(f"{half}-{name}") for name in ("hmc", half)]
        if pair[0] is not None and pair[1] is not None:
            fits = [results.load(c, results.replications(c)[0]) for c in pair if c is not None]
            found.append(draw(*fits))
    return found


def _histogram(axis: Axes, half: str, x: FloatArray, weight: FloatArray, colour: str) -> None:
    """Draw a weighted histogram with the exact density over it."""
    mixture = MIXTURES[half]
    span = mixture.mean[:, 0]
    edge = np.linspace(span[0] - 3.5 * mixture.sd[0], span[1] + 3.5 * mixture.sd[1], 81)
    axis.hist(x, edge.tolist(), weights=weight, density=True, color=colour, alpha=0.6)
    fine = np.linspace(edge[0], edge[-1], 400)
    axis.plot(fine, np.exp(mixture.log_density(fine[:, None])), color=INK, linewidth=1)
    axis.set(xlabel="x", ylabel="density", xlim=(edge[0], edge[-1]))


def _pseudo_extended(hmc: Fit, pe: Fit) -> Figure:
    """Draws of HMC, of the extended target over its contours, and weighted (Figs. 1 and 6)."""
    figure, axes = new_figure(1, 3, width=10, height=3.3)
    x = hmc.posterior["x"].to_numpy().ravel()
    _histogram(axes[0], "pe", x, np.ones(len(x)), COLOURS[0])
    axes[0].set_title("HMC on the target", fontsize=10)
    draws = pe.tree["extended"]
    pair = draws["x"].isel(x_dim_0=0).transpose("chain", "draw", ...).to_numpy()[0]
    weight = normalised_weights(pe.log_weight)[0]
    side = np.linspace(-4, 4, 161)
    x1, x2 = np.meshgrid(side, side)
    axes[1].plot(pair[:, 0], pair[:, 1], ".", color=COLOURS[1], markersize=1, alpha=0.25)
    density = extended_density(x1, x2)
    axes[1].contour(
        x1,
        x2,
        density,
        density.max() * np.array([0.01, 0.05, 0.2, 0.6]),
        colors=INK,
        linewidths=0.6,
    )
    axes[1].set(xlabel="x₁", ylabel="x₂", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    axes[1].set_title("Extended target, N=2", fontsize=10)
    _histogram(axes[2], "pe", pair.ravel(), weight.ravel(), COLOURS[1])
    axes[2].set_title("Pseudo-extended, weighted", fontsize=10)
    return Figure(
        "pseudo-extended",
        "Left: one run of HMC on the target, whose exact density is the line. Middle: draws of "
        "two pseudo-samples over contours of their extended density, where the modes are joined "
        "by the bands of the wide instrumental distribution. Right: the same draws weighted; "
        "both modes should be filled to the line. As Figures 1 and 6 of Nemeth et al. (2019).",
        "Histogram of HMC, scatter plot of two pseudo-samples over contours, and histogram of "
        "the weighted pseudo-samples with the exact density.",
        to_image(figure),
    )


def _tempering(hmc: Fit, ct: Fit) -> Figure:
    """Densities, extended potential with a trajectory, draws in (x, beta), histograms (Fig. 1)."""
    figure, axes = new_figure(2, 3, width=10, height=6.2)
    mixture, base = MIXTURES["ct"], bases()["ct"]
    fine = np.linspace(-9, 9, 500)
    axes[0].plot(fine, np.exp(mixture.log_density(fine[:, None])), color=COLOURS[0], label="target")
    axes[0].plot(fine, np.exp(base.log_density(fine[:, None])), color=COLOURS[2], label="base")
    axes[0].legend(fontsize=8)
    axes[0].set(xlabel="x", ylabel="density", title="(a) Target and base")

    u = np.linspace(-7, 7, 201)
    grid_x, grid_u = np.meshgrid(fine, u)
    height = potential(grid_x, grid_u)
    axes[1].contour(
        grid_x,
        grid_u,
        height - height.min(),
        [1, 2, 3, 4, 6, 8, 11, 15, 20, 30],
        cmap="Greys_r",
        linewidths=0.8,
    )
    path = trajectory(-4.0, 1.0, (1.2, -2.5))
    axes[1].plot(path[:, 0], path[:, 1], color=COLOURS[2], linewidth=1.5)
    axes[1].plot(*path[0], "o", color=COLOURS[2], markersize=5)
    axes[1].set(
        xlabel="x",
        ylabel="u, logit of β",
        title="(b) Potential and a trajectory",
        xlim=(-9, 9),
        ylim=(-7, 7),
    )

    draws = ct.tree["extended"]
    x = draws["x"].to_numpy()[0, :, 0]
    beta = draws["inv_temp"].to_numpy()[0]
    log_w1 = ct.log_weight[0]
    step = max(1, len(x) // 1500)
    size = 1 + 11 * np.exp(log_w1[::step] - log_w1.max())
    axes[2].scatter(x[::step], beta[::step], s=size, color=COLOURS[1], alpha=0.5, linewidths=0)
    axes[2].set(
        xlabel="x",
        ylabel="inverse temperature β",
        title="(c) Draws, sized by p(β=1 | x)",
        xlim=(-9, 9),
        ylim=(0, 1),
    )

    plain = hmc.posterior["x"].to_numpy().ravel()
    _histogram(axes[3], "ct", plain, np.ones(len(plain)), COLOURS[0])
    axes[3].set_title("(d) HMC on the target")
    _histogram(axes[4], "ct", x, normalised_weights(log_w1), COLOURS[1])
    axes[4].set_title("(d) Continuous tempering, weighted")
    axes[5].remove()
    for axis in axes[:5]:
        axis.title.set_fontsize(10)
    return Figure(
        "tempering",
        "(a) The target's two modes and the Gaussian base of the same mean and variance. (b) "
        "Contours of the potential on x and the logit of β, and one simulated trajectory (dot: "
        "its start): low β lets it pass between the modes. (c) Draws of x and β; their size is "
        "their weight, which draws at low β have too where x is probable. (d) Histograms with the "
        "exact density: HMC stays in one mode, the weighted tempered chain has both at their "
        "masses. As Figure 1 of Graham and Storkey (2017).",
        "Five panels: densities of target and base, contours of the extended potential with a "
        "trajectory, draws in x and inverse temperature, and two histograms.",
        to_image(figure),
    )
