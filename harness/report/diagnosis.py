"""Diagnose one cell of an experiment: its replications as the chains of one ArviZ object."""

from __future__ import annotations

import io
from dataclasses import dataclass

import arviz_plots
import arviz_stats
import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr

from harness import weights
from harness.experiment.spec import Cell, Figure, Results
from harness.fit import PSEUDO_SAMPLE, Fit, pooled
from harness.report.style import COLOURS, new_figure, to_image

# The rank plot's simultaneous bands are simulated for independent draws; their cost grows with
# the square of the draws, and thinning brings autocorrelated draws nearer to what they assume.
_PANELS = 6  # numbers that are pictured; the summary has all
_RANK_DRAWS = 200


@dataclass(frozen=True)
class CellDiagnosis:
    """What the report shows of a cell: ArviZ summary, facts in words, pictures."""

    cell: Cell
    summary: pd.DataFrame
    facts: tuple[str, ...]
    figures: tuple[Figure, ...]


def diagnose_cell(results: Results, cell: Cell) -> CellDiagnosis:
    """Diagnose the replications of a cell together.

    Every replication started from its own random point, so R-hat and the ranks across them
    say whether runs agree: chains that each stay in other modes show here.
    """
    fits = [results.load(cell, replication) for replication in results.replications(cell)]
    together = pooled(fits)
    posterior, extended = together.posterior, together.extended
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    summary: pd.DataFrame = arviz_stats.summary(tree, round_to="none")
    few = _few(posterior)
    figures = [_ranks(cell, few), _ess(cell, xr.DataTree.from_dict({"/posterior": few}))]
    if extended is not None:
        if "inv_temp" in extended:
            figures.append(_inverse_temperatures(cell, extended))
        if PSEUDO_SAMPLE in extended.sizes:
            figures.append(_weights(cell, extended))
    return CellDiagnosis(cell, summary, _facts(together), tuple(figures))


def _few(posterior: xr.Dataset) -> xr.Dataset:
    """Keep the first numbers of the posterior, for pictures with a panel each."""
    kept: dict[str, xr.DataArray] = {}
    left = _PANELS
    for name, values in posterior.data_vars.items():
        first, *others = values.dims[2:] or (None,)
        if first is not None:
            values = values.isel({first: slice(left), **dict.fromkeys(others, 0)})
            left -= values.sizes[first]
        else:
            left -= 1
        kept[str(name)] = values
        if left <= 0:
            break
    return xr.Dataset(kept)


def _facts(fit: Fit) -> tuple[str, ...]:
    """Say in words what the draws and the sampler's statistics show, worst first."""
    findings = tuple(str(finding) for finding in fit.diagnose())
    if "n_steps" not in fit.sample_stats:  # not a run of NUTS
        return findings
    steps = f"{int(fit.sample_stats['n_steps'].mean()):,} leapfrog steps a draw on average."
    return (*findings, steps)


def _ranks(cell: Cell, posterior: xr.Dataset) -> Figure:
    step = max(1, posterior.sizes["draw"] // _RANK_DRAWS)
    thinned = posterior.isel(draw=slice(None, None, step))
    thinned = thinned.assign_coords(draw=np.arange(thinned.sizes["draw"]))
    png = _arviz_png("plot_rank", xr.DataTree.from_dict({"/posterior": thinned}))
    return Figure(
        f"{cell.key}-ranks",
        "Ranks of each run's draws among all (thinned), as the difference of their cumulative "
        "distribution from the uniform. Lines inside the band: the runs agree.",
        f"Rank plot across runs of {cell.label}.",
        png,
    )


def _ess(cell: Cell, tree: xr.DataTree) -> Figure:
    return Figure(
        f"{cell.key}-ess",
        "Effective sample size, bulk and tail, of growing parts of the draws. It should grow in "
        "proportion to the draws; where it stays flat the runs disagree.",
        f"Evolution of the effective sample size of {cell.label}.",
        _arviz_png("plot_ess_evolution", tree),
    )


def _inverse_temperatures(cell: Cell, extended: xr.Dataset) -> Figure:
    figure, (axis,) = new_figure(width=4.6, height=2.8)
    inv_temp = extended["inv_temp"].to_numpy()
    if PSEUDO_SAMPLE not in extended.sizes:
        inv_temp = inv_temp[..., None]
    bins = np.linspace(0, 1, 41).tolist()
    for index in range(inv_temp.shape[-1]):
        axis.hist(
            inv_temp[..., index].ravel(),
            bins,
            density=True,
            histtype="step",
            color=COLOURS[index % len(COLOURS)],
            label=f"pseudo-sample {index + 1}",
        )
    if inv_temp.shape[-1] <= 5:
        axis.legend(fontsize=7)
    axis.set(xlabel="inverse temperature β", ylabel="density")
    return Figure(
        f"{cell.key}-inverse-temperatures",
        "Density of each pseudo-sample's inverse temperature over all runs. The curves are those "
        "of exchangeable variables and should coincide; mass near 0 is what joins the modes.",
        f"Histogram of the inverse temperatures of {cell.label}.",
        to_image(figure),
    )


def _weights(cell: Cell, extended: xr.Dataset) -> Figure:
    log_weight = extended["log_weight"].transpose(..., PSEUDO_SAMPLE).to_numpy()
    effective = weights.effective_pseudo_samples(log_weight)
    figure, (axis,) = new_figure(width=4.6, height=2.8)
    axis.hist(
        effective.ravel(), np.linspace(1, log_weight.shape[-1], 41).tolist(), color=COLOURS[1]
    )
    axis.set(yscale="log", xlabel="effective pseudo-samples in a draw", ylabel="draws")
    return Figure(
        f"{cell.key}-weights",
        f"Effective number of pseudo-samples, 1 / Σ w², in each draw, between 1 and "
        f"{log_weight.shape[-1]}; {effective.mean():.2f} on average. At 1 a single "
        "pseudo-sample carries the draw.",
        f"Histogram of the effective number of pseudo-samples of {cell.label}.",
        to_image(figure),
    )


def _arviz_png(plot: str, tree: xr.DataTree) -> bytes:
    """Draw one of ArviZ's plots off screen and close it."""
    from matplotlib import pyplot as plt

    buffer = io.BytesIO()
    with mpl.rc_context({"backend": "agg"}):
        collection = getattr(arviz_plots, plot)(tree, backend="matplotlib")
        figure = collection.viz["figure"].item()
        figure.savefig(buffer, format="png", dpi=100, facecolor="white")
        plt.close(figure)
    return buffer.getvalue()
