"""The table of errors of each decoder."""

from __future__ import annotations

import pandas as pd

from harness.plan.spec import Results, Table

from .joint_error import JointError
from .summary import ImageResults, Line, decoders, image_results


def tables(results: Results) -> list[Table]:
    """Bounds, and errors of the joint log Z by method, of each decoder and set of images."""
    return [
        _table(found)
        for decoder in decoders(results)
        for found in image_results(results, decoder)
        if found.lines
    ]


def _table(found: ImageResults) -> Table:
    rows = []
    for line in found.lines.values():
        points = [-1] if line.grows else range(len(line.gradients))
        rows += [_row(line, point, line.error(point)) for point in points]
    lower, upper = found.bounds
    return Table(
        f"errors-{found.decoder}-{found.images}",
        f"Log joint evidence of {found.images} images of {found.decoder}, in nats: error against "
        f"the middle of the bounds {lower:.2f} and {upper:.2f}. Images are independent, so that "
        "the standard deviation rests on groups of them; the bias with its standard error rests on "
        "the runs. By NUTS fewer images are run. Seconds are of the processor, but for NUTS.",
        pd.DataFrame(rows).set_index("method"),
    )


def _row(line: Line, point: int, error: JointError) -> dict[str, object]:
    gradients, seconds = float(line.gradients[point]), float(line.seconds[point])
    name = line.label if line.grows else f"{line.label}, {line.names[point]}"
    return {
        "method": name,
        "runs": error.runs,
        "images": line.images,
        "bias": f"{error.bias:+.2f} ± {error.bias_se:.2f}",
        "standard deviation": round(error.variance**0.5, 3),
        "RMSE": round(error.rmse, 3),
        "of its logarithm ±": round(error.se / error.mean_square / 2, 2),
        "by MCSE": round(float(line.mcse[point]), 3),
        "seconds a run": round(seconds, 2),
        "thousand gradients": round(gradients / 1000),
        "microseconds a gradient": round(1e6 * seconds / gradients, 2),
    }
