"""Tables of the horseshoe experiment: held-out density at equal cost, cost, the exact problem."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.plan.spec import Results, Table

from .cells import HMC
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


def difference(results: Results, data: str, row: str, other: str) -> tuple[float, float, int]:
    """Mean over splits of a row's held-out density minus another's, standard error, splits.

    Paired: only splits that both have finished count.  NaN with fewer than two.
    """
    a, b = (runs_of(results, data, each)["lpd"] for each in (row, other))
    paired = (a - b).dropna()
    if len(paired) < 2:
        return float("nan"), float("nan"), len(paired)
    return float(paired.mean()), float(paired.std(ddof=1) / np.sqrt(len(paired))), len(paired)


def density_table(results: Results) -> pd.DataFrame:
    """A row a data set and method: held-out density, its difference to HMC, what it cost."""
    rows = []
    for cell in results.cells:
        data = cell.factors["data"]
        if data == "exact":
            continue
        runs = runs_of(results, data, cell.factors["row"])
        mean, error, _ = difference(results, data, cell.factors["row"], HMC.key)
        lpd = runs["lpd"].to_numpy()
        level, spread = lpd.mean(), lpd.std(ddof=1) / np.sqrt(len(lpd))
        rows.append(
            {
                "data": data,
                "method": cell.label.split(" (")[0],
                "splits": len(runs),
                "log density": f"{level:.3f} ± {spread:.3f}",
                "minus HMC": "" if cell.factors["row"] == HMC.key else f"{mean:+.3f} ± {error:.3f}",
                "Monte Carlo error": round(float(np.sqrt((runs["lpd_mcse"] ** 2).mean())), 3),
                "joint": round(float(runs["joint_lpd"].mean()), 2),
                "class shares alone": round(float(runs["base_rate"].mean()), 3),
                "draws": int(runs["draws_used"].mean()),
                "share of budget": round(float(runs["share_of_budget"].mean()), 2),
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
                "observations; what the class shares alone predict; and what the draws cost of "
                "the budget of likelihood gradients, of which a leapfrog step of N pseudo-samples "
                "takes N. The paper prints pictures (Figures 5 and 10) and no numbers.",
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
