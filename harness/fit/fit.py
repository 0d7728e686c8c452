"""The result of a run: draws, estimates from them, their cost, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError, StoreError
from harness.evidence import Estimate, LogEvidence, TwoSidedLogEvidence
from harness.files import write_bytes
from harness.fit.netcdf import read_tree, write_tree
from harness.fit.tempered import PSEUDO_SAMPLE, TemperedDraws, follows_path, tempered_draws
from harness.fit.weighting import LOG_WEIGHT, Weighting, seen_weighting

FORMAT = "harness-fit-1"
"""Mark of a fit's file."""


class Fit:
    """Result of one run of a method on a model.

    Parameters
    ----------
    tree
        DataTree with the groups and attributes that :mod:`harness.fit` describes.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree

    @property
    def posterior(self) -> xr.Dataset:
        """Unweighted draws of the target, axes (chain, draw, ...)."""
        return self.tree["posterior"].to_dataset()

    @property
    def extended(self) -> xr.Dataset | None:
        """Raw draws of the extended target, or None when the target itself was sampled."""
        return self.tree["extended"].to_dataset() if "extended" in self.tree else None

    @property
    def weighting(self) -> Weighting:
        """How the raw draws are weighted; see :data:`harness.fit.weighting.Weighting`."""
        weighting: Weighting | None = self.tree.attrs.get("weighting")
        return weighting or seen_weighting(self.extended)

    @property
    def log_weight(self) -> FloatArray:
        """Log weights that make the raw draws those of the target.

        Shape (chains, draws), 0 where draws are unweighted, with an axis over pseudo-samples where
        there are any.
        """
        extended, weighting = self.extended, self.weighting
        if extended is None or weighting == "unweighted":
            return np.zeros(tuple(self.posterior.sizes[axis] for axis in ("chain", "draw")))
        variable = extended[LOG_WEIGHT[weighting]]
        last = (PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in variable.dims else ()
        weights: FloatArray = variable.transpose("chain", "draw", *last).to_numpy()
        return weights

    @property
    def pseudo_samples(self) -> int:
        """Number of pseudo-samples in each raw draw: 1 of forms that have none."""
        extended = self.extended
        return 1 if extended is None else int(extended.sizes.get(PSEUDO_SAMPLE, 1))

    @property
    def follows_path(self) -> bool:
        """Whether raw draws come with the inverse temperature at which they were drawn."""
        return follows_path(self.extended)

    @property
    def raw(self) -> xr.Dataset:
        """Raw draws of what ``posterior`` has, under the same names; pseudo-samples along an axis.

        Where the target itself was sampled they are its draws.
        """
        extended, posterior = self.extended, self.posterior
        if extended is None:
            return posterior
        # A parameter whose name methods use themselves has another among the extended draws.
        own = {str(name): f"{name}_parameter" for name in posterior}
        return xr.Dataset(
            {
                name: extended[other if other in extended and other not in posterior else name]
                for name, other in own.items()
            }
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the target's parameters; ``posterior`` may have functions of them besides."""
        return tuple(json.loads(self.tree.attrs.get("parameters", "[]"))) or tuple(
            map(str, self.posterior)
        )

    @property
    def sample_stats(self) -> xr.Dataset:
        """Statistics of the sampler, axes (chain, draw)."""
        return self.tree["sample_stats"].to_dataset()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the method, as they were given."""
        settings: dict[str, Any] = json.loads(self.tree.attrs["settings"])
        return settings

    @property
    def gradients(self) -> int:
        """Gradient evaluations over all chains, warm-up and pilot included.

        Of the extended density, but in a pilot and of Python-driven samplers of the target's.
        """
        return int(self._cost("gradients"))

    @property
    def seconds(self) -> float:
        """Seconds of sampling, over all chains, warm-up and pilot included, compiling not."""
        return self._cost("seconds")

    def with_settings(self, **settings: Any) -> Fit:
        """Return the fit with more settings to remember: plain data."""
        tree = self.tree.copy(deep=False)
        tree.attrs = self.tree.attrs | {
            "settings": json.dumps(self.settings | settings, sort_keys=True)
        }
        return Fit(tree)

    def _cost(self, kind: str) -> float:
        attrs = self.tree.attrs
        phases = ("pilot", "warmup", "sampling")
        return float(sum(np.sum(attrs.get(f"{kind}_{phase}", 0)) for phase in phases))

    def provenance(self) -> dict[str, Any]:
        """Return the attributes as plain values: method, settings, seed, versions, cost."""
        attrs = {
            str(key): value.tolist() if hasattr(value, "tolist") else value
            for key, value in self.tree.attrs.items()
        }
        return {**attrs, "settings": self.settings}

    def thinned(self, most: int) -> Fit:
        """Return the fit with every k-th draw only, so that at most ``most`` remain a chain.

        Estimates from it are less precise than those of the whole fit; its attribute
        ``kept_every`` says so.
        """
        step = -(-self.posterior.sizes["draw"] // most)
        if step <= 1:
            return self
        return self._with_draws(slice(None, None, step), kept_every=step)

    def first_draws(self, number: int) -> Fit:
        """Return the fit with the first ``number`` draws of each chain only; its cost stays."""
        return self._with_draws(slice(number))

    def _with_draws(self, draws: slice, **attrs: Any) -> Fit:
        groups = {
            f"/{name}": node.to_dataset().isel(draw=draws)
            if "draw" in node.sizes
            else node.to_dataset()
            for name, node in self.tree.children.items()
        }
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = {**self.tree.attrs, **attrs}
        return Fit(tree)

    def series(self, f: Callable[[xr.Dataset], xr.DataArray]) -> xr.DataArray:
        """Return the series whose plain average over draws estimates E_target[f].

        For the target's own draws that is f(x_t); for pseudo-extended draws the weighted sum
        over pseudo-samples, h_t = sum_i w_ti f(x_ti) (Nemeth et al. 2019, eq. 3).

        Parameters
        ----------
        f
            Function of the target's parameters, given as a Dataset by name.  It must act on
            each draw (and each pseudo-sample) by itself, keeping their named axes.
        """
        if self.weighting == "across draws":
            raise DataError(
                f"a {self.tree.attrs['method']} fit weighs draws against each other: it has no "
                "series whose plain average is the estimate"
            )
        if self.weighting == "unweighted":
            return f(self.raw).transpose("chain", "draw", ...)
        weight = xr.DataArray(
            evidence.normalised_weights(self.log_weight), dims=("chain", "draw", PSEUDO_SAMPLE)
        )
        return (weight * f(self.raw)).sum(PSEUDO_SAMPLE).transpose("chain", "draw", ...)

    def expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_target[f] with its Monte Carlo standard error.

        The plain mean of :meth:`series`, or for a continuously tempered run the mean weighted
        by w_1(x) = p(beta = 1 | x) (Graham and Storkey 2017, eq. 21).

        Parameters
        ----------
        f
            As in :meth:`series`.
        """
        if self.weighting == "across draws":
            return evidence.weighted_expectation(self._values(f), self.log_weight)
        return evidence.expectation(self.series(f).to_numpy())

    def effective_draws(self, f: Callable[[xr.Dataset], xr.DataArray]) -> FloatArray:
        """Estimate how many independent draws of the target are as good for E_target[f].

        Var[f] / MCSE^2, which takes weights and autocorrelation into account; NaN where f is
        constant.

        Parameters
        ----------
        f
            As in :meth:`series`.
        """
        log_weight = self.log_weight
        if self.weighting == "within draws":
            log_weight = log_weight - np.logaddexp.reduce(log_weight, axis=-1, keepdims=True)
        return evidence.effective_draws(self._values(f), log_weight)

    def base_expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_base[f] from a run along the path (Graham and Storkey 2017, eq. 22).

        Where the base's own moments are known, an estimate that is off is a failed run.

        Raises
        ------
        DataError
            If the draws follow no path; see :attr:`tempered`.
        """
        return evidence.weighted_expectation(self._values(f), self.tempered.log_w0)

    @property
    def tempered(self) -> TemperedDraws:
        """The draws of the path from base to target.

        Raises
        ------
        DataError
            If there are none: see :func:`harness.fit.tempered.tempered_draws`.
        """
        return tempered_draws(
            self.extended, self.weighting, self.settings, self.tree.attrs["method"]
        )

    @property
    def log_evidence(self) -> LogEvidence:
        """Estimate of log Z from a run along the path, with its error.

        From a continuously tempered run by Graham and Storkey (2017), eq. 20; from a
        pseudo-extended run by the same on the pseudo-samples that are not the chosen ones; of a
        method that has an estimate of its own, that one.

        Raises
        ------
        DataError
            If the draws follow no path, or a pseudo-extended run has no Gaussian base.
        """
        attrs = self.tree.attrs
        if "log_evidence" in attrs:
            return LogEvidence(float(attrs["log_evidence"]), float(attrs["log_evidence_mcse"]))
        return self.tempered.log_evidence()

    @property
    def two_sided_log_evidence(self) -> TwoSidedLogEvidence | None:
        """Estimates of log Z up the path and down it, and their gap; None for few draws.

        Raises
        ------
        DataError
            As for :attr:`log_evidence`.
        """
        return self.tempered.two_sided()

    def _values(self, f: Callable[[xr.Dataset], xr.DataArray]) -> FloatArray:
        """Return f of every raw draw, axes (chain, draw, ...), with a third of pseudo-samples."""
        values = f(self.raw)
        third = (PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in values.dims else ()
        array = values.transpose("chain", "draw", *third, ...).to_numpy()
        # One layout in memory, so that sums are the same to the last digit after save and load.
        return np.ascontiguousarray(array, dtype=np.float64)

    def save(self, path: Path) -> None:
        """Write the fit as NetCDF, whole or not at all.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        write_bytes(path, write_tree(self.tree))

    @classmethod
    def load(cls, path: Path) -> Fit:
        """Read a fit that :meth:`save` wrote.

        Raises
        ------
        StoreError
            If there is no such file, or it is damaged or not a fit of ours.
        """
        try:
            tree = read_tree(path)
        except FileNotFoundError:
            raise StoreError(f"there is no fit {path}") from None
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise StoreError(f"{path} is damaged or no NetCDF file ({error})") from error
        if tree.attrs.get("format") != FORMAT or "posterior" not in tree:
            raise StoreError(f"{path} is a NetCDF file, but not a fit of this program")
        return cls(tree)
