"""The result of a run: draws, estimates from them, their cost, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError, HarnessError, StoreError, one_line
from harness.evidence import Estimate, LogEvidence, TwoSidedLogEvidence
from harness.files import write_bytes
from harness.fit.entries import ENTRY, entries, number_of_entries
from harness.fit.netcdf import read_tree, root_attribute, write_tree
from harness.fit.tempered import PSEUDO_SAMPLE, TemperedDraws, follows_path, tempered_draws
from harness.fit.weighed_modes import WeighedModes, weighed_modes
from harness.fit.weighting import LOG_WEIGHT, Weighting, seen_weighting

VERSION = 1
"""Version of the form in which fits are stored: raise it whenever older files are read wrongly."""

FORMAT = f"harness-fit-{VERSION}"
"""Marks a file as one of a fit."""

CHAINS_INTERACT = "chains_interact"
"""Attribute, 1 or missing, of a fit whose chains are walkers that depend on each other."""

SEPARATE = "chains_are_separate_runs"
"""Attribute, 1 or missing, of a fit whose draws depend on each other within a chain in no order, as
particles with common ancestors do."""

SYSTEMS = "systems"
"""Attribute of a fit whose chains have the draws of so many independent runs one after the other; 1
if it is missing."""

_Read = TypeVar("_Read")
_DAMAGED = (
    *(OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError, IndexError),
    *(OverflowError, RecursionError, MemoryError),
)
"""What libraries and our own properties raise about a file that is not as we write it."""


def is_fit(path: Path) -> bool:
    """Whether a file is one of a fit, as far as its mark says."""
    return root_attribute(path, "format") == FORMAT


def _ensemble_mean(series: FloatArray) -> FloatArray:
    """Return the mean over chains of a series (chains, draws, ...), as a single chain."""
    mean: FloatArray = series.mean(axis=0, keepdims=True)
    return mean


class Fit:
    """The result of one run of a method on a model.

    Parameters
    ----------
    tree
        DataTree with the groups and attributes that :mod:`harness.fit` describes.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self._r_hats: dict[str, tuple[Any, float]] = {}

    @property
    def posterior(self) -> xr.Dataset:
        """Unweighted draws of the target, axes (chain, draw, ...)."""
        return self.tree["posterior"].to_dataset()

    @property
    def extended(self) -> xr.Dataset | None:
        """Raw draws of the extended target, or None if the target itself was sampled."""
        return self.tree["extended"].to_dataset() if "extended" in self.tree else None

    @property
    def weighting(self) -> Weighting:
        """How the raw draws are weighted; see :data:`harness.fit.weighting.Weighting`."""
        weighting: Weighting | None = self.tree.attrs.get("weighting")
        return weighting or seen_weighting(self.extended)

    @property
    def log_weight(self) -> FloatArray:
        """Log weights that turn the raw draws into draws of the target.

        Shape (chains, draws), with one more axis over pseudo-samples if there are any; 0 if the
        draws are unweighted.  If masses weigh the modes, they include that.
        """
        own, modes = self.drawn_log_weight, self.weighed_modes
        return own if modes is None else evidence.weigh_strata(own, modes.mode, modes.probability)

    @property
    def drawn_log_weight(self) -> FloatArray:
        """The same as the method itself has made them, before masses weigh the modes."""
        extended, weighting = self.extended, self.weighting
        if extended is None or weighting == "unweighted":
            return np.zeros(tuple(self.posterior.sizes[axis] for axis in ("chain", "draw")))
        variable = extended[LOG_WEIGHT[weighting]]
        last = (PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in variable.dims else ()
        weights: FloatArray = variable.transpose("chain", "draw", *last).to_numpy()
        return weights

    @property
    def weighed_modes(self) -> WeighedModes | None:
        """The modes, if draws are weighted so that each mode has its probability by its mass.

        See :func:`harness.fit.weigh_modes`.
        """
        return weighed_modes(self.tree)

    @property
    def largest_r_hats(self) -> dict[str, float]:
        """Largest R-hat over the entries of each variable of ``posterior``, NaN if none has any.

        It takes a millisecond for each entry, and several steps of a run ask for it, so that it is
        computed once for each array of draws.

        Raises
        ------
        DataError
            If there are fewer than 8 draws.
        """
        for name, draws in self.posterior.items():
            known = self._r_hats.get(str(name))
            if known is None or known[0] is not draws.data:
                series = draws.transpose("chain", "draw", ...).to_numpy()
                self._r_hats[str(name)] = draws.data, evidence.largest_r_hat(series)
        return {str(name): self._r_hats[str(name)][1] for name in self.posterior}

    @property
    def compared(self) -> xr.Dataset:
        """Draws by which chains are compared: ``posterior``.

        If masses weigh the modes, it does not matter how many draws each chain has in which mode.
        Then these are the ranks of each chain's own draws within their modes, as normal scores.
        """
        modes = self.weighed_modes
        if modes is None:
            return self.posterior
        # The same draws each time; equal weights leave them all as they are.
        kept = evidence.resample(self.drawn_log_weight, np.random.default_rng(0))
        chain = np.arange(len(kept))[:, None]
        mode = modes.mode[chain, kept]

        def within(draws: xr.DataArray) -> xr.DataArray:
            ordered = draws.transpose("chain", "draw", ...)
            values = ordered.to_numpy().astype(np.float64)[chain, kept]
            return ordered.copy(data=evidence.strata_scores(values, mode))

        return self.raw.map(within)

    @property
    def pseudo_samples(self) -> int:
        """Number of pseudo-samples in each raw draw; 1 for forms that have none."""
        extended = self.extended
        return 1 if extended is None else int(extended.sizes.get(PSEUDO_SAMPLE, 1))

    @property
    def follows_path(self) -> bool:
        """Whether raw draws come with the inverse temperature at which they were drawn."""
        return follows_path(self.extended)

    @property
    def raw(self) -> xr.Dataset:
        """Raw draws of everything in ``posterior``, by the same names.

        Pseudo-samples have an axis of their own, the third.  If the target itself was sampled,
        these are the draws of the target.
        """
        extended, posterior = self.extended, self.posterior
        if extended is None:
            return posterior
        # A parameter whose name methods use themselves has another name in the extended draws.
        own = {str(name): f"{name}_parameter" for name in posterior}
        raw = xr.Dataset(
            {
                name: extended[other if other in extended and other not in posterior else name]
                for name, other in own.items()
            }
        )
        # Behind a parameter's own axes it would be taken for one of them by `x[..., 0]`.
        return raw.transpose("chain", "draw", PSEUDO_SAMPLE, ..., missing_dims="ignore")

    @property
    def chains_interact(self) -> bool:
        """Whether chains depend on each other, as walkers of an ensemble do.

        Errors then come from the series of their means, and R-hat, which compares independent
        chains, says nothing.
        """
        return bool(self.tree.attrs.get(CHAINS_INTERACT, 0))

    @property
    def chains_are_separate_runs(self) -> bool:
        """Whether the draws of a chain depend on each other in no order, as particles do.

        The spread of the chains' own estimates then tells what errors are at least.
        """
        return bool(self.tree.attrs.get(SEPARATE, 0))

    @property
    def systems(self) -> int:
        """Independent runs, as of systems of replicas, that each chain has one after the other."""
        return int(self.tree.attrs.get(SYSTEMS, 1))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the target's parameters; ``posterior`` may also hold functions of them."""
        return tuple(json.loads(self.tree.attrs.get("parameters", "[]"))) or tuple(
            map(str, self.posterior)
        )

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of those in ``posterior`` that are no parameters."""
        parameters = self.parameters
        return tuple(name for name in map(str, self.posterior) if name not in parameters)

    @property
    def sample_stats(self) -> xr.Dataset:
        """Statistics of the sampler, axes (chain, draw)."""
        return self.tree["sample_stats"].to_dataset()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the method, as they were given to it."""
        settings: dict[str, Any] = json.loads(self.tree.attrs["settings"])
        return settings

    @property
    def gradients(self) -> int:
        """Gradient evaluations over all chains, including warm-up, pilot and the table of modes.

        They are evaluations of the extended density; in a pilot and in samplers that Python drives,
        they are evaluations of the target's density.
        """
        return int(self._cost("gradients"))

    @property
    def seconds(self) -> float:
        """Seconds of sampling over all chains, including all that ``gradients`` includes.

        Compilation does not count.
        """
        return self._cost("seconds")

    def with_settings(self, **settings: Any) -> Fit:
        """Return the fit with additional settings recorded, which must be plain data."""
        tree = self.tree.copy(deep=False)
        tree.attrs = self.tree.attrs | {
            "settings": json.dumps(self.settings | settings, sort_keys=True)
        }
        return Fit(tree)

    def _cost(self, kind: str) -> float:
        attrs = self.tree.attrs
        phases = ("pilot", "warmup", "sampling", "modes")
        return float(sum(np.sum(attrs.get(f"{kind}_{phase}", 0)) for phase in phases))

    def provenance(self) -> dict[str, Any]:
        """Return the attributes as plain values: method, settings, seed, versions, cost."""
        attrs = {
            str(key): value.tolist() if hasattr(value, "tolist") else value
            for key, value in self.tree.attrs.items()
        }
        return {**attrs, "settings": self.settings}

    def thinned(self, most: int) -> Fit:
        """Return the fit with every k-th draw only, so that each chain keeps at most ``most``.

        Estimates from it are less precise than those of the whole fit; its attribute
        ``kept_every`` records k.
        """
        step = -(-self.posterior.sizes["draw"] // most)
        if step <= 1:
            return self
        return self._with_draws(slice(None, None, step), kept_every=step)

    def first_draws(self, number: int) -> Fit:
        """Return the fit with only the first ``number`` draws of each chain; its cost is kept."""
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

        For the target's own draws that is f(x_t).  For pseudo-extended draws it is the weighted sum
        over pseudo-samples, h_t = sum_i w_ti f(x_ti) (Nemeth et al. 2019, eq. 3).

        Parameters
        ----------
        f
            Function of the target's parameters, which it takes as a Dataset, by name.  It must act
            on each draw (and each pseudo-sample) separately, and keep their named axes.  Of an
            event, such as ``lambda q: q["x"] > 0``, the estimate is its probability.

        Raises
        ------
        DataError
            If f does not keep the axes, or the fit weighs draws against each other.
        """
        if self.weighting == "across draws":
            raise DataError(
                f"a {self.tree.attrs['method']} fit weighs draws against each other, so it has no "
                "series whose plain average is the estimate"
            )
        if self.weighting == "unweighted":
            return self._of_draws(f).transpose("chain", "draw", ...)
        weight = xr.DataArray(
            evidence.normalised_weights(self.log_weight), dims=("chain", "draw", PSEUDO_SAMPLE)
        )
        return (weight * self._of_draws(f)).sum(PSEUDO_SAMPLE).transpose("chain", "draw", ...)

    def expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_target[f] with its Monte Carlo standard error.

        This is the plain mean of :meth:`series`, or, for a continuously tempered run, the mean
        weighted by w_1(x) = p(beta = 1 | x) (Graham and Storkey 2017, eq. 21).  If masses weigh the
        modes, it is the mean of :func:`harness.evidence.stratified_expectation`.

        Parameters
        ----------
        f
            The same as in :meth:`series`.
        """
        modes = self.weighed_modes
        if modes is not None:
            return evidence.stratified_expectation(
                *(self._values(f), self.log_weight, modes.mode, modes.log_error),
                separate=self.chains_are_separate_runs,
            )
        if self.weighting == "across draws":
            return evidence.weighted_expectation(
                self._values(f), self.log_weight, separate=self.chains_are_separate_runs
            )
        series = self.series(f).to_numpy()
        if self.chains_interact:
            return evidence.expectation(_ensemble_mean(series))
        return evidence.expectation(series, systems=self.systems)

    def effective_draws(self, f: Callable[[xr.Dataset], xr.DataArray]) -> FloatArray:
        """Estimate how many independent draws of the target give E_target[f] as precisely.

        This is Var[f] / MCSE^2, which takes weights and autocorrelation into account.  It is NaN if
        f is constant.

        Parameters
        ----------
        f
            The same as in :meth:`series`.
        """
        if self.chains_interact:
            values = self.series(f).to_numpy()
            deviation, mcse = evidence.standard_deviation(values), self.expectation(f).mcse
            with np.errstate(divide="ignore", invalid="ignore"):
                moves = (deviation > 0) & ~evidence.constant(values)
                return np.where(moves, np.square(deviation / mcse), np.nan)
        own = self.weighed_modes is not None or self.chains_are_separate_runs or self.systems > 1
        estimate = self.expectation(f) if own else None
        return evidence.effective_draws(self._values(f), self._log_shares, estimate)

    def fewest_effective_draws(self, name: str) -> float:
        """Return the smallest of :meth:`effective_draws` over the entries of a variable.

        Of many entries only those are looked at closely that :func:`harness.evidence.slowest` puts
        first, because each takes a millisecond.

        Parameters
        ----------
        name
            One of those in ``posterior``.

        Returns
        -------
        float
            NaN if all entries are constant.
        """
        count = self.effective_draws(self._slowest_of(name))
        return float("nan") if np.isnan(count).all() else float(np.nanmin(count))

    @property
    def _log_shares(self) -> FloatArray:
        """Log weights of the raw draws by which each has its share of all estimates."""
        log_weight = self.log_weight
        if self.weighting == "within draws":
            log_weight = log_weight - np.logaddexp.reduce(log_weight, axis=-1, keepdims=True)
        return log_weight

    def _slowest_of(self, name: str) -> Callable[[xr.Dataset], xr.DataArray]:
        """Return a function that takes out the entries of a variable that mix worst."""
        modes = self.weighed_modes
        draws, log_weight = self.raw[name], self._log_shares
        if modes is not None:
            draws, log_weight = self.compared[name], np.zeros(log_weight.shape)
        if number_of_entries(draws) <= evidence.LOOKED_AT:
            return itemgetter(name)
        axes = ("chain", "draw", PSEUDO_SAMPLE)[: log_weight.ndim]
        found = evidence.slowest(
            entries(draws).transpose(*axes, ENTRY).to_numpy().astype(np.float64, copy=False),
            log_weight,
        )

        def taken(each: xr.Dataset) -> xr.DataArray:
            return entries(each[name])[{ENTRY: found}]

        return taken

    def base_expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_base[f] from a run along the path (Graham and Storkey 2017, eq. 22).

        If the base's own moments are known and the estimate differs from them, the run has failed.

        Raises
        ------
        DataError
            If the draws do not follow a path; see :attr:`tempered`.
        """
        return evidence.weighted_expectation(self._values(f), self.tempered.log_w0)

    @property
    def tempered(self) -> TemperedDraws:
        """The draws along the path from base to target.

        Raises
        ------
        DataError
            If there are none; see :func:`harness.fit.tempered.tempered_draws`.
        """
        return tempered_draws(
            self.extended, self.weighting, self.settings, self.tree.attrs["method"]
        )

    @property
    def log_evidence(self) -> LogEvidence:
        """Estimate of log Z from a run along the path, with its error.

        If the method has estimated log Z itself, this is that estimate.  A continuously tempered
        run estimates it by Graham and Storkey (2017), eq. 20.  A pseudo-extended run uses the same
        equation with the pseudo-samples that are not the chosen ones.

        Raises
        ------
        DataError
            If the draws do not follow a path, or a pseudo-extended run has no normalised base.
        """
        attrs = self.tree.attrs
        if "log_evidence" in attrs:
            return LogEvidence(float(attrs["log_evidence"]), float(attrs["log_evidence_mcse"]))
        return self.tempered.log_evidence()

    @property
    def two_sided_log_evidence(self) -> TwoSidedLogEvidence | None:
        """Estimates of log Z up and down the path, and their gap; None if there are few draws.

        Raises
        ------
        DataError
            For the same reasons as in :attr:`log_evidence`.
        """
        return self.tempered.two_sided()

    def _values(self, f: Callable[[xr.Dataset], xr.DataArray]) -> FloatArray:
        """Return f of every raw draw, axes (chain, draw, ...); pseudo-samples are a third axis."""
        values = self._of_draws(f)
        third = (PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in values.dims else ()
        array = values.transpose("chain", "draw", *third, ...).to_numpy()
        # One layout in memory, so that sums are the same to the last digit after save and load.
        return np.ascontiguousarray(array, dtype=np.float64)

    def _of_draws(self, f: Callable[[xr.Dataset], xr.DataArray]) -> xr.DataArray:
        """Return a caller's function of every raw draw, an event as 0 and 1.

        Raises
        ------
        DataError
            If it has lost the axes of the draws.
        """
        raw = self.raw
        values = f(raw)
        wanted = ("chain", "draw", *((PSEUDO_SAMPLE,) if PSEUDO_SAMPLE in raw.dims else ()))
        if not isinstance(values, xr.DataArray) or not set(wanted) <= set(values.dims):
            found = values.dims if isinstance(values, xr.DataArray) else type(values).__name__
            axes = ", ".join(wanted[:-1])
            raise DataError(
                f"the function of the draws returned {found}, and not a DataArray with the axes "
                f"{axes} and {wanted[-1]}: use the Dataset's own operations and methods, not those "
                "of NumPy arrays"
            )
        return values.astype(float) if values.dtype == bool else values

    def count_as_warmup(self, first: Fit) -> None:
        """Add all that a first run took, with its table of modes, to the warm-up of this one."""
        for what, taken in (("gradients", first.gradients), ("seconds", first.seconds)):
            mine = np.asarray(self.tree.attrs[f"{what}_warmup"])
            self.tree.attrs[f"{what}_warmup"] = mine + taken / mine.size

    def save(self, path: Path) -> None:
        """Write the fit as NetCDF, completely or not at all.

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
            If there is no such file, or it is damaged or not a fit that we wrote.
        """
        try:
            tree = read_tree(path)
        except FileNotFoundError:
            raise StoreError(f"there is no fit {path}") from None
        except _DAMAGED as error:
            said = one_line(error)
            raise StoreError(f"{path} is damaged or is no NetCDF file ({said})") from error
        mark = tree.attrs.get("format")
        if isinstance(mark, str) and mark.startswith("harness-fit-") and mark != FORMAT:
            raise StoreError(
                f"{path} is a fit of another version of harness ({mark}); this one reads {FORMAT}"
            )
        if not (isinstance(mark, str) and mark == FORMAT) or "posterior" not in tree:
            raise StoreError(f"{path} is a NetCDF file, but not a fit of this program")
        fit = cls(tree)
        try:
            fit._check()
        except (*_DAMAGED, HarnessError) as error:
            said = one_line(error)
            raise StoreError(f"{path} is a fit of this program, but damaged ({said})") from error
        return fit

    def attribute(self, name: str, read: Callable[[Any], _Read]) -> _Read | None:
        """Return what an attribute of the fit's tree holds; None if there is no such attribute.

        Parameters
        ----------
        name
            Its name.
        read
            Turns what is kept into what it stands for.

        Raises
        ------
        StoreError
            If it is not as we write it.
        """
        if name not in self.tree.attrs:
            return None
        try:
            return read(self.tree.attrs[name])
        except _DAMAGED as error:
            raise StoreError(f"the fit's {name} is damaged ({one_line(error)})") from error

    def _check(self) -> None:
        """Read everything that other parts of the harness rely on; any error means damage."""
        for text in self.tree.attrs.values():
            if isinstance(text, str):
                text.encode()  # a flipped bit may have left what is no text
        for dataset in (self.posterior, self.sample_stats, self.raw):
            for name, variable in dataset.items():
                if variable.dims and not {"chain", "draw"} <= set(variable.dims):
                    raise ValueError(f"{name} has no axes chain and draw")
                if variable.dtype.kind not in "biuf":
                    raise ValueError(f"{name} holds no numbers")
        if not all(isinstance(name, str) for name in self.parameters):
            raise ValueError("its parameters are not names")
        unknown = [name for name in self.parameters if name not in self.posterior]
        if unknown:
            raise ValueError(f"it has no draws of {unknown[0]}")
        if not isinstance(self.settings, dict):
            raise TypeError("its settings are not given by name")
        if not isinstance(self.tree.attrs["method"], str):
            raise TypeError("its method is not a name")
        if not np.isfinite([self.gradients, self.seconds]).all():
            raise ValueError("its cost is not finite")
        if self.log_weight.ndim < 2:
            raise ValueError("its weights have no axes chain and draw")
        modes = self.weighed_modes
        if modes is not None and len(modes.probability) != len(modes.log_error):
            raise ValueError("its modes have other masses than probabilities")
        if "log_evidence" in self.tree.attrs:
            float(self.log_evidence.value)
