"""Tables of the horseshoe experiment: held-out density at equal cost, cost, the exact problem."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.plan.effects import mean_effect
from harness.plan.spec import Results, Table

from .cells import HMC
from .measures import SHARES
from .small import expected_in_shared_form


def data_names(results: Results) -> list[str]:
    """Data sets with finished cells, in the grid's order."""
    names = (cell.factors["data"] for cell in results.cells)
    return [name for name in dict.fromkeys(names) if name != "exact"]


def runs_of(results: Results, data: str, row: str) -> pd.DataFrame:
    """Metrics of one row's splits, indexed by split; empty if the cell is not shown."""
    key = f"{data}-{row}"
    if key not in {cell.key for cell in results.cells}:
        return results.metrics.iloc[:0].set_index("replication")
    return results.metrics[results.metrics["cell"] == key].set_index("replication").sort_index()


def common_share(results: Results, data: str) -> int | None:
    """Percentage of the budget that every run of a data set has spent, the largest of SHARES.

    All rows are compared at it, so that every run has cost the same number of gradients.
    """
    rows = [cell.factors["row"] for cell in results.cells if cell.factors["data"] == data]
    runs = pd.concat([runs_of(results, data, row) for row in rows])
    reached = [
        percent
        for percent in SHARES
        if f"lpd_{percent}" in runs and runs[f"lpd_{percent}"].notna().all()
    ]
    return max(reached, default=None)


def density_of(results: Results, data: str, row: str, name: str = "lpd") -> pd.Series:
    """Held-out density, or another of its measures, of a row's splits at the common share.

    NaN if there is none.
    """
    runs, percent = runs_of(results, data, row), common_share(results, data)
    if percent is None:
        return pd.Series(np.nan, index=runs.index)
    found: pd.Series = runs[f"{name}_{percent}"]
    return found


def difference(results: Results, data: str, row: str, other: str) -> pd.Series:
    """A row's held-out density minus another's in each split that both have finished."""
    a, b = (density_of(results, data, each) for each in (row, other))
    paired: pd.Series = (a - b).dropna()
    return paired


def density_table(results: Results) -> pd.DataFrame:
    """A row a data set and method: held-out density, its difference to HMC, what it cost."""
    rows = []
    for cell in results.cells:
        data, row = cell.factors["data"], cell.factors["row"]
        percent = None if data == "exact" else common_share(results, data)
        if percent is None:
            continue
        runs = runs_of(results, data, row)
        lpd, mcse, joint, draws = (
            density_of(results, data, row, name).to_numpy()
            for name in ("lpd", "lpd_mcse", "joint_lpd", "draws")
        )
        spread = lpd.std(ddof=1) / np.sqrt(len(lpd))
        against = difference(results, data, row, HMC.key)
        gain = mean_effect(against) if len(against) > 1 and row != HMC.key else None
        rows.append(
            {
                "data": data,
                "method": cell.label.split(" (")[0],
                "splits": len(runs),
                "log density": f"{lpd.mean():.3f} ± {spread:.3f}",
                "minus HMC": "" if gain is None else f"{gain.value:+.3f} ± {gain.se:.3f}",
                "Monte Carlo error": round(float(np.sqrt((mcse**2).mean())), 3),
                "joint": round(float(joint.mean()), 2),
                "class shares alone": round(float(runs["base_rate"].mean()), 3),
                "draws": int(draws.mean()),
                "compared at": f"{percent} % of the budget",
                "spent": round(float(runs["share_of_budget"].mean()), 2),
            }
        )
    return pd.DataFrame(rows).set_index(["data", "method"]) if rows else pd.DataFrame()


def cost_table(results: Results) -> pd.DataFrame:
    """A row a data set and method: gradients, divergences and time."""
    rows = []
    for cell in results.cells:
        if cell.factors["data"] == "exact":
            continue
        runs = runs_of(results, cell.factors["data"], cell.factors["row"])
        gradients = cell.factors["N"] * runs["gradients"]
        rows.append(
            {
                "data": cell.factors["data"],
                "method": cell.label.split(" (")[0],
                "thousand gradients": round(float(runs["likelihood_gradients"].mean() / 1e3), 1),
                "of warm-up": round(float(runs["warmup_likelihood_gradients"].mean() / 1e3), 1),
                "divergences": round(float(runs["divergences"].mean()), 1),
                "seconds": round(float(runs["seconds"].mean()), 1),
                "microseconds a gradient": round(
                    float(1e6 * runs["seconds"].sum() / gradients.sum()), 0
                ),
            }
        )
    return pd.DataFrame(rows).set_index(["data", "method"]) if rows else pd.DataFrame()


def exact_table(results: Results) -> pd.DataFrame:
    """Estimates of the small problem beside the posterior's truth and what the form should have.

    ``z truth`` and ``z form`` are the deviations from either in Monte Carlo standard errors.
    """
    rows = []
    for cell in results.cells:
        if cell.factors["data"] != "exact":
            continue
        runs = runs_of(results, "exact", cell.factors["row"])
        estimate = float(runs["bounded"].mean())
        error = float(np.sqrt((runs["bounded_mcse"] ** 2).sum()) / len(runs))
        shared = cell.factors["form"] == "shared_scales"
        inv_temp = None if cell.factors["inv_temp"] == "sampled" else cell.factors["inv_temp"]
        truth = float(cell.model.truth.expected("bounded"))
        form = expected_in_shared_form(inv_temp) if shared else truth
        rows.append(
            {
                "row": cell.factors["row"],
                "method": cell.label.split(" (")[0],
                "runs": len(runs),
                "estimate": estimate,
                "mcse": error,
                "posterior": truth,
                "bias": estimate - truth,
                "this form": form,
                "z truth": (estimate - truth) / error,
                "z form": (estimate - form) / error,
            }
        )
    return pd.DataFrame(rows).set_index("row") if rows else pd.DataFrame()


def tables(results: Results) -> list[Table]:
    """Held-out density, cost, and the small problem."""
    found = []
    density = density_table(results)
    if not density.empty:
        found += [
            Table(
                "density",
                "Log predictive density of the held-out fifth, mean per observation in nats (± "
                "standard error over splits, which all methods share); its paired difference to "
                "HMC's; Monte Carlo error of one split; the joint density of all held-out "
                "observations; what the class shares alone predict. All runs of a data set are "
                "compared after the same number of likelihood gradients, of which a leapfrog step "
                "of N pseudo-samples takes N: the largest share of the budget that all have spent. "
                "The last column is what was spent of it. The paper prints pictures (Figures 5 and "
                "10) and no numbers.",
                density,
            ),
            Table(
                "cost",
                "Likelihood gradients of a run, in thousands: of the draws used, and of warm-up "
                "besides; seconds that Stan spent.",
                cost_table(results),
            ),
        ]
    exact = exact_table(results)
    if not exact.empty:
        found.append(
            Table(
                "exact",
                "Six observations of one predictor: E[τ / (τ₀ + τ)] from weighted draws, its "
                "value under the posterior by quadrature, and under the distribution that the "
                "form has by its derivation; deviations in Monte Carlo standard errors (z). Large "
                "z from the posterior with small z from the form: the form is biased as derived.",
                exact.set_index("method").round(4),
            )
        )
    return found
