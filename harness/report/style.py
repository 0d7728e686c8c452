"""One style for all figures: colours per method, sizes, and the bytes of a picture."""

from __future__ import annotations

import io

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

# Okabe and Ito's palette, told apart under the common forms of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_LARGEST_SVG = 150_000

INK = "#1f2933"
GRID = "#d5dbe1"


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 9.0, height: float = 3.2
) -> tuple[MplFigure, list[Axes]]:
    """Return a figure and its axes, row by row; sizes in inches.

    Made without pyplot, so nothing global is touched and threads can draw at once.
    """
    figure = MplFigure(figsize=(width, height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes:
        axis.grid(visible=True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(colors=INK, labelsize=8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def to_image(figure: MplFigure) -> bytes:
    """Render a figure on a white ground, which reads on light and dark pages alike.

    As SVG where that is small, with text as text; else, with thousands of points, as PNG.
    """
    vector = _rendered(figure, "svg")
    return vector if len(vector) <= _LARGEST_SVG else _rendered(figure, "png")


def _rendered(figure: MplFigure, kind: str) -> bytes:
    buffer = io.BytesIO()
    # No date and no random ids: the same figure is the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "harness"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=metadata)
    return buffer.getvalue()


def media_type(image: bytes) -> str:
    """Media type of what :func:`to_image` returned."""
    return "image/png" if image.startswith(b"\x89PNG") else "image/svg+xml"
