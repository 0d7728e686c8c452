"""Figure 4 of the paper: estimates and errors against time; and its test images."""

from __future__ import annotations

import numpy as np

from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, new_figure, to_image

from .grid import LABELS
from .image_set import set_of
from .summary import ImageResults, Line, decoders, image_results

_SHOWN = 100  # images of the appendix


def figures(results: Results) -> list[Figure]:
    """The paper's Figure 4 and its test images, for each decoder and set of images."""
    found = []
    for decoder in decoders(results):
        sets = [each for each in image_results(results, decoder) if each.lines]
        found += [figure_4(each) for each in sets]
        if sets and (shown := generated_images(results, decoder)) is not None:
            found.append(shown)
    return found


def figure_4(found: ImageResults) -> Figure:
    """Estimates of the log joint evidence against time, and their errors against both costs."""
    middle = sum(found.bounds) / 2
    figure, axes = new_figure(1, 3, width=12.0, height=3.8)
    for colour, (method, label) in zip(COLOURS, LABELS.items(), strict=False):
        line = found.lines.get(method)
        if line is None or line.images != found.images:
            continue  # an error on fewer images is another quantity
        errors = [line.error(point) for point in range(len(line.gradients))]
        mean = middle + np.array([error.bias for error in errors])
        # Of the runs alone: the truth's error moves all of them together.
        three = 3 * np.sqrt([error.variance / error.runs for error in errors])
        style = "-" if line.grows else "o"
        if line.grows:
            axes[0].plot(line.seconds, mean, color=colour, label=label)
            axes[0].fill_between(
                line.seconds, mean - three, mean + three, color=colour, alpha=0.18, linewidth=0
            )
        else:
            axes[0].errorbar(
                line.seconds, mean, three, fmt="o", color=colour, markersize=4, label=label
            )
        rmse = [error.rmse for error in errors]
        for axis, cost in ((axes[1], line.seconds), (axes[2], line.gradients)):
            axis.plot(cost, rmse, style, color=colour, markersize=4)
    names = ("lower", "upper")
    for bound, colour, name in zip(found.bounds, ("#b00020", "black"), names, strict=True):
        axes[0].axhline(bound, color=colour, linestyle="--", linewidth=1, label=f"{name} bound")
    reach = _reach(found.lines)
    axes[0].set(ylim=(middle - reach, middle + reach), ylabel="log joint evidence, nats")
    for axis in axes[1:]:
        half = (found.bounds[1] - found.bounds[0]) / 2
        if half > 0:
            axis.axhline(half, color="black", linestyle=":", linewidth=1)
        axis.set(yscale="log", ylabel="RMSE, nats")
    units = ("processor seconds", "processor seconds", "gradients")
    for axis, unit in zip(axes, units, strict=True):
        axis.set(xscale="log", xlabel=unit)
    axes[0].legend(fontsize=6, loc="lower right")
    return Figure(
        f"figure-4-{found.decoder}-{found.images}",
        f"{found.images} images of {found.decoder}: estimates of their log joint evidence against "
        "time, means over runs with three standard errors, between the stochastic bounds (dashed); "
        "and their root mean squared error from the bounds' middle, against time and against "
        "gradients. The dotted line is half the gap between the bounds.",
        "Charts of estimates of log joint evidence against seconds, and of their errors against "
        "seconds and gradients.",
        to_image(figure),
    )


def _reach(lines: dict[str, Line]) -> float:
    """How far from the truth the estimates are shown: all that AIS and Gibbs CT end with."""
    last = [lines[name].error() for name in ("ais", "gibbs") if name in lines]
    return max([1.0, *(4 * error.rmse for error in last)])


def generated_images(results: Results, decoder: str) -> Figure | None:
    """The first images that were generated, as in the paper's Figures 6 and 7; squares only."""
    cell = next(
        cell
        for cell in results.cells
        if cell.factors["decoder"] == decoder and cell.factors["method"] == "bdmc"
    )
    pixels = set_of(cell.model).image[:_SHOWN]
    side = round(pixels.shape[1] ** 0.5)
    if side**2 != pixels.shape[1]:
        return None
    across = min(10, len(pixels))
    down = -(-len(pixels) // across)
    page = np.zeros((down * (side + 1), across * (side + 1)))
    for number, image in enumerate(pixels):
        row, column = divmod(number, across)
        top, left = row * (side + 1), column * (side + 1)
        page[top : top + side, left : left + side] = image.reshape(side, side)
    figure, (axis,) = new_figure(width=5.0, height=5.0 * down / across)
    axis.imshow(page, cmap="Greys", interpolation="nearest")
    axis.set_axis_off()
    return Figure(
        f"images-{decoder}",
        f"The first {len(pixels)} of the images of {decoder} (Figures 6 and 7 of the paper show "
        "those of MNIST and Omniglot).",
        "Black and white images side by side.",
        to_image(figure),
    )
