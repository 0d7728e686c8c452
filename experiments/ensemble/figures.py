"""The paper's Figures 1 to 3 as far as they can be made, and autocorrelation times as a chart."""

from __future__ import annotations

import itertools

import numpy as np

from harness.arrays import FloatArray
from harness.models.log_gaussian_cox import TRUE_RANGE, TRUE_SIGMA2, true_field
from harness.models.stamps import QUANTITIES, load_stamps, relabelled
from harness.plan.spec import Figure, Results
from harness.report.style import BAND, COLOURS, INK, new_figure, to_image

from .grid import RAW, SIZES, UNC, process
from .tables import published, times

_MODE = np.array([7.17, 7.9, 9.92, 34, 23.5, 0.54, 0.23, 0.34, 0.11])


def figures(results: Results) -> list[Figure]:
    """All figures; those of data alone are always there."""
    made = [poorly_scaled(), stamps_and_modes(results), points_and_field(results)]
    chart = time_chart(results)
    return [chart, *made] if chart is not None else made


def _banana(x: FloatArray, y: FloatArray) -> FloatArray:
    return -0.5 * (x**2 + (y - x**2 + 1) ** 2 / 0.02)


def _cross(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.logaddexp(-0.5 * ((x - 1) ** 2 + 60 * (y - 1) ** 2),
                        -0.5 * (60 * (x + 1) ** 2 + (y + 1) ** 2))  # fmt: skip


def _narrow(x: FloatArray, y: FloatArray) -> FloatArray:
    return -0.5 * ((x - y) ** 2 / 0.04 + (x + y) ** 2 / 4)


def poorly_scaled() -> Figure:
    """Three shapes like those of Figure 1; the paper gives no formulas."""
    figure, axes = new_figure(1, 3, width=9.0, height=3.5)
    line = np.linspace(-3, 3, 201)
    x, y = np.meshgrid(line, line)
    titles = ("a: one linear map will do", "b: bent", "c: two modes, two shapes")
    for axis, density, title in zip(axes, (_narrow, _banana, _cross), titles, strict=True):
        value = density(x, y)
        axis.contour(x, y, np.exp(value - value.max()), levels=(0.15, 0.35, 0.55, 0.75, 0.9),
                     colors=COLOURS[0], linewidths=1)  # fmt: skip
        axis.set(title=title, aspect="equal")
    return Figure(
        "figure-1",
        "Three densities like those of the paper's Figure 1, for which it prints no formulas. A "
        "covariance of all walkers helps with the first only.",
        "Contours of a narrow Gaussian, of a banana, and of two crossed modes.",
        to_image(figure),
    )


def stamps_and_modes(results: Results) -> Figure:
    """The data with a mixture near the mode, and where walkers are in the plane of two means."""
    figure, (left, right) = new_figure(1, 2, width=9.0, height=3.6)
    data = load_stamps()
    left.bar(data.thickness, data.count / data.count.sum() / 0.1, width=0.1, color=BAND)
    line = np.linspace(5.5, 13.5, 400)
    z = np.append(_MODE[6:8], 1 - _MODE[6:8].sum())
    whole = np.zeros_like(line)
    for k in range(3):
        part = z[k] * np.sqrt(_MODE[3 + k] / (2 * np.pi))
        part = part * np.exp(-0.5 * _MODE[3 + k] * (line - _MODE[k]) ** 2)
        left.plot(line, part, color=COLOURS[(1, 2, 0)[k]], linewidth=1)
        whole += part
    left.plot(line, whole, color=INK, linewidth=1)
    left.set(xlabel="thickness, 0.01 mm", ylabel="density")
    line = np.linspace(6.5, 10.7, 106)
    levels = [-1000, -500, -250, -120, -60, -30, -10]
    right.contour(line, line, _over_two_means(line), levels, colors="#8795a1", linewidths=0.8,
                  linestyles="solid")  # fmt: skip
    draws = _draws(results, "raw-eqn", "mu")
    if draws is not None:
        right.plot(
            draws[..., 0].ravel(), draws[..., 1].ravel(), ".", color=COLOURS[0], markersize=2
        )
    right.set(xlabel="μ₁, 0.01 mm", ylabel="μ₂, 0.01 mm")
    caption = (
        "The paper's Figure 2. Left: the stamps with three components near the mode and their sum. "
        "Right: log posterior over two means, 10 to 1,000 below its maximum, with all else as at "
        "the mode of the order for which it is highest"
    )
    if draws is not None:
        caption += "; dots are draws of all EQN walkers, which stay in the orders they start in"
    return Figure(
        "figure-2",
        f"{caption}.",
        "A histogram of stamps with three curves, and contours about six modes in the plane of two "
        "means.",
        to_image(figure),
    )


def _over_two_means(line: FloatArray) -> FloatArray:
    """Return the log posterior below its maximum, rows by mu_2 and columns by mu_1."""
    first, second = (each.ravel() for each in np.meshgrid(line, line))
    highest = np.full(len(first), -np.inf)
    for order in itertools.permutations(range(3)):
        points = np.tile(relabelled(_MODE, order), (len(first), 1))
        points[:, 0], points[:, 1] = first, second
        highest = np.maximum(highest, load_stamps().raw_log_density(points)[0])
    top = load_stamps().raw_log_density(_MODE[None])[0][0]
    return np.asarray((highest - top).reshape(len(line), len(line)))


def _draws(results: Results, key: str, name: str) -> FloatArray | None:
    """Return draws of a parameter in the first run of a cell, if it was made."""
    for cell in results.cells:
        if cell.key == key and results.replications(cell):
            return results.target_draws(cell, results.replications(cell)[0])[name]
    return None


def points_and_field(results: Results) -> Figure:
    """The points of the Cox process, its true field and, if there are draws, the mean field."""
    side = SIZES[results.profile].side
    data = process(side)
    maps = {
        "points in each cell": data.points.astype(np.float64),
        "true log intensity": true_field(side, data.distance),
    }
    draws = _draws(results, "cox-eqn", "x")
    if draws is not None:
        maps["posterior mean"] = draws.mean(axis=(0, 1)).reshape(side, side)
    figure, axes = new_figure(1, len(maps), width=3.4 * len(maps), height=3.2)
    fields = np.stack(list(maps.values())[1:])
    for k, (axis, (title, values)) in enumerate(zip(axes, maps.items(), strict=True)):
        # One scale for the fields, so that they can be compared.
        ends = (float(fields.min()), float(fields.max())) if k else (0.0, float(values.max()))
        image = axis.imshow(values, cmap="viridis", origin="lower", vmin=ends[0], vmax=ends[1])
        axis.set(title=title, xticks=[], yticks=[])
        axis.grid(visible=False)
        figure.colorbar(image, ax=axis, shrink=0.8)
    also = " and, on the same scale, its posterior mean by EQN" if draws is not None else ""
    return Figure(
        "figure-3",
        f"Like the paper's Figure 3, for our own points of {side} x {side} cells, drawn at σ² = "
        f"{TRUE_SIGMA2} and β = 1/{1 / TRUE_RANGE:.0f} (the paper does not publish its own): the "
        f"points, the field that they were drawn with{also}.",
        "Maps of a square: numbers of points, and log intensities.",
        to_image(figure),
    )


def time_chart(results: Results) -> Figure | None:
    """Autocorrelation times of the slowest quantity, with the paper's as crosses."""
    # Walkers that hardly move have no times to be shown.
    tables = {part: times(results, part).drop("EQN, λ = 0", errors="ignore") for part in (RAW, UNC)}
    if all(table.empty for table in tables.values()):
        return None
    figure, (axis,) = new_figure(width=8.0, height=3.8)
    schemes = list(dict.fromkeys([*tables[RAW].index, *tables[UNC].index]))
    for shift, (part, colour) in enumerate(((RAW, COLOURS[1]), (UNC, COLOURS[0]))):
        table = tables[part]
        place = np.array([schemes.index(each) for each in table.index]) + 0.3 * shift - 0.15
        axis.barh(place, table[list(QUANTITIES)].max(axis=1), 0.28, color=colour, label=part)
    paper = published(1).max(axis=1)
    shown = [each for each in schemes if each in paper.index]
    axis.plot(paper[shown], [schemes.index(each) - 0.15 for each in shown], "x", color=INK,
              label="published, raw by inference")  # fmt: skip
    axis.set(xscale="log", yticks=range(len(schemes)), xlabel="gradients, slowest quantity")
    axis.set_xlim(left=1)
    axis.set_yticklabels(schemes)
    axis.invert_yaxis()
    axis.legend(fontsize=7)
    return Figure(
        "times",
        "Gradients of a walker for an independent sample of the slowest of the four quantities, "
        "with precisions and weights themselves (raw) and with their logarithms.",
        "Bars of autocorrelation times on a logarithmic axis, with the published ones as crosses.",
        to_image(figure),
    )
