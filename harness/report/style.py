"""One style for all figures: a colour and marker for each method, sizes, and bytes of images."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.extended_hamiltonian import ExtendedHamiltonian
from harness.forms.folded import Folded
from harness.forms.nuts import Nuts
from harness.forms.pseudo_extended import CollapsedPseudoExtended, PseudoExtended

# Okabe and Ito's palette, which people with the common forms of colour blindness can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_LARGEST_SVG = 150_000
# A lower bound: one pair of coordinates of a path.
_BYTES_A_POINT = 10

INK = "#1f2933"
GRID = "#d5dbe1"
BAND = "#c3ccd5"
GOOD, BAD = COLOURS[2], COLOURS[1]


@dataclass(frozen=True)
class MethodStyle:
    """How a method is named and drawn on every page.

    Attributes
    ----------
    label
        Its name in words.
    colour, marker
        Colour and marker as in Matplotlib; the marker distinguishes methods whose colours look
        alike.
    """

    label: str
    colour: str
    marker: str


METHODS: dict[str, MethodStyle] = {
    **{
        form.name: MethodStyle(form.label, colour, marker)
        for form, colour, marker in (
            (Nuts, COLOURS[0], "o"),
            (PseudoExtended, COLOURS[1], "s"),
            (CollapsedPseudoExtended, COLOURS[3], "D"),
            (JointTempering, COLOURS[2], "^"),
            (CollapsedTempering, COLOURS[4], "v"),
            (ExtendedHamiltonian, COLOURS[6], ">"),
            (Folded, "#DDCC77", "D"),
        )
    },
    "gibbs_tempering": MethodStyle("Gibbs tempering", COLOURS[5], "<"),
    # Tol's muted scheme for the baselines, which are drawn next to one or two of the above.
    "sequential_monte_carlo": MethodStyle("Tempered SMC", "#882255", "P"),
    "annealed_importance": MethodStyle("Annealed importance sampling", "#44AA99", "X"),
    "simulated_tempering": MethodStyle("Simulated tempering", "#332288", "*"),
    "parallel_tempering": MethodStyle("Parallel tempering", "#999933", "h"),
    "tempered_transitions": MethodStyle("Tempered transitions", "#AA4499", "p"),
    "equi_energy": MethodStyle("Equi-energy sampler", "#117733", "d"),
    "repelling_attracting": MethodStyle("Repelling-attracting Metropolis", "#661100", "8"),
    "joint_hmc": MethodStyle("Joint tempering by HMC", "#1B7837", "1"),
    "pseudo_extended_moves": MethodStyle("Pseudo-extended, other moves", "#CC3311", "2"),
    "path_sampling": MethodStyle("Path sampling", "#6699CC", "H"),
    "nested_sampling": MethodStyle("Nested sampling", "#0B775E", "P"),
    "nuts_in_modes": MethodStyle("NUTS in each mode", "#555599", "o"),
    "simple_monte_carlo": MethodStyle("Simple Monte Carlo", "#7570B3", "."),
    "multicanonical": MethodStyle("Multicanonical sampling", "#A6761D", "d"),
    "ensemble_quasi_newton": MethodStyle("Ensemble quasi-Newton", "#CC6677", "H"),
    "langevin": MethodStyle("Langevin dynamics", "#88CCEE", "+"),
    "hmc": MethodStyle("HMC, unit metric", "#8C6D31", "x"),
    "exchange": MethodStyle("Exchange algorithm", "#004488", "d"),
    "auxiliary_variables": MethodStyle("Auxiliary variables", "#BB5566", "D"),
    "slice_auxiliary": MethodStyle("Slices, auxiliary variables", "#994455", "o"),
    "latent_history": MethodStyle("Latent histories", "#225522", "v"),
    "known_constant": MethodStyle("Metropolis, log Z given", "#DDAA33", "s"),
    "uncorrected_langevin": MethodStyle("Langevin, uncorrected", "#997700", "+"),
    "fold_importance": MethodStyle("Importance sampling from a fold", "#888888", "X"),
}
"""Style of each method, by the name that fits record."""

_FROM_PILOT = "_from_pilot"


def method_style(method: str) -> MethodStyle:
    """Return how a method is drawn; starting from a pilot changes only the label.

    A method that is not listed is grey, with a label made from its name.
    """
    plain = method.removesuffix(_FROM_PILOT)
    style = METHODS.get(plain, MethodStyle(plain.replace("_", " ").capitalize(), "#666666", "."))
    if plain == method:
        return style
    return replace(style, label=f"{style.label}, from a pilot")


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 9.0, height: float = 3.2
) -> tuple[MplFigure, list[Axes]]:
    """Return a figure and its axes, row by row, with a layout that fits; sizes are in inches.

    It is made without pyplot, so there is no global state, and several threads can draw at once.
    """
    figure = MplFigure(figsize=(width, height), layout="constrained")
    return figure, _styled_axes(figure, rows, columns)


def column_figure(
    rows: int = 1, columns: int = 1, *, height: float = 2.8, title: bool = False
) -> tuple[MplFigure, list[Axes]]:
    """Return a figure as wide as a column of a page, with fixed margins.

    Fitting the margins takes as long as drawing, which is too long for pages with many figures.

    Parameters
    ----------
    rows, columns
        Numbers of axes.  Axes in a column share the label below them, and axes in a row share the
        label on their left.
    height
        Height in inches; the width is 4.8.
    title
        Whether the axes have titles.
    """
    width = 4.8
    figure = MplFigure(figsize=(width, height))
    figure.subplots_adjust(
        left=0.75 / width,
        right=1 - 0.12 / width,
        bottom=0.48 / height,
        top=1 - (0.3 if title else 0.1) / height,
        hspace=0.25,
        wspace=0.3,
    )
    return figure, _styled_axes(figure, rows, columns)


def _styled_axes(figure: MplFigure, rows: int, columns: int) -> list[Axes]:
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes:
        axis.grid(visible=True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(colors=INK, labelsize=8)
        for part in (axis.xaxis.label, axis.yaxis.label):
            part.set(size=9, color=INK)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return axes


def to_image(figure: MplFigure) -> bytes:
    """Render a figure on a white background, which is readable on light and on dark pages.

    The result is SVG with text as text, or PNG if the SVG would have thousands of points.
    """
    points = sum(np.size(line.get_xdata()) for axis in figure.axes for line in axis.lines)
    if points * _BYTES_A_POINT <= _LARGEST_SVG:
        vector = _rendered(figure, "svg")
        if len(vector) <= _LARGEST_SVG:
            return vector
    return _rendered(figure, "png")


def _rendered(figure: MplFigure, kind: str) -> bytes:
    buffer = io.BytesIO()
    # No date and no random ids, so that the same figure gives the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "harness"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=metadata)
    return buffer.getvalue()


def media_type(image: bytes) -> str:
    """Return the media type of an image that :func:`to_image` returned."""
    return "image/png" if image.startswith(b"\x89PNG") else "image/svg+xml"
