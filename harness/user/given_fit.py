"""Read a fit that somebody already has: CmdStan's CSV files, an ArviZ file or object, our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.engine.nuts import SAMPLE_STATS
from harness.engine.sampler_csv import read_sampler_csv
from harness.errors import DataError, one_line
from harness.fit import Fit, build_fit, is_fit
from harness.user.in_modes import METHOD as IN_MODES
from harness.user.result import UserFit

_STATS = dict(SAMPLE_STATS.values())
_TEXT = b"#"
_NOT_NETCDF = (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError)


@dataclass(frozen=True)
class GivenDraws:
    """Draws of a posterior from a fit, whatever made it; arrays start with axes (chain, draw).

    Attributes
    ----------
    source
        How messages refer to the fit.
    variables
        Every variable of the fit, by name.
    sample_stats
        Statistics of the sampler under ArviZ's names; ``lp`` is Stan's ``lp__``.
    """

    source: str
    variables: Mapping[str, FloatArray]
    sample_stats: Mapping[str, FloatArray]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws in each."""
        first = next(iter(self.variables.values()))
        return first.shape[0], first.shape[1]

    def parameters(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
        """Return the draws of a program's parameters.

        Parameters
        ----------
        shapes
            Shape of each parameter that has values.

        Raises
        ------
        DataError
            If one is missing or has another shape.
        """
        missing = [name for name in shapes if name not in self.variables]
        if missing:
            has = ", ".join(self.variables) or "nothing"
            raise DataError(
                f"{self.source} has no draws of the program's parameter {', '.join(missing)}; it "
                f"has {has}. Log Z needs all parameters, because transformed parameters and "
                "generated quantities do not tell them: sample again and save the parameters. If "
                "these are draws of another program, give that one"
            )
        for name, shape in shapes.items():
            own = self.variables[name].shape[2:]
            if own != shape:
                raise DataError(
                    f"{self.source} has draws of {name} of shape {own}, but with these data the "
                    f"program declares it with shape {shape}: the fit belongs to other data or to "
                    "another program"
                )
        return {name: self.variables[name] for name in shapes}

    def as_fit(self, names: Sequence[str], data: Mapping[str, Any]) -> Fit:
        """Return a fit of these parameters, as the diagnosis takes it."""
        return build_fit(
            posterior={name: self.variables[name] for name in names},
            extended=None,
            sample_stats=self.sample_stats,
            constant_data=data,
            attrs={"method": "nuts", "settings": {}, "parameters": json.dumps(list(names))},
        )


def read_given(fit: Any) -> GivenDraws:
    """Read draws from a file, several files or an object.

    Parameters
    ----------
    fit
        A path or several: CSV files of CmdStan's sampler, one for each chain, or one NetCDF file of
        ArviZ or of harness.  Or an object: a ``CmdStanMCMC``, anything with ArviZ's group
        ``posterior`` (``InferenceData``, ``DataTree``), or a fit of harness.

    Raises
    ------
    DataError
        If it is nothing of these, is damaged, or holds weighted draws.
    """
    if isinstance(fit, UserFit):
        return _of_fit(fit.fit, "the fit")
    if isinstance(fit, Fit):
        return _of_fit(fit, "the fit")
    if isinstance(fit, str | Path):
        return _of_files([Path(fit)])
    if isinstance(fit, Sequence):
        return _of_files([Path(each) for each in fit])
    files = getattr(getattr(fit, "runset", None), "csv_files", None)
    if files is not None:
        return _of_files([Path(each) for each in files])
    return _of_groups(fit, "the fit")


def _of_files(paths: list[Path]) -> GivenDraws:
    if not paths:
        raise DataError("give a fit: CSV files of CmdStan's sampler, or a NetCDF file")
    for path in paths:
        if path.is_dir():
            raise DataError(f"{path} is a folder: give the files of the chains")
        if not path.is_file():
            raise DataError(f"there is no file {path}")
    if len(set(map(Path.resolve, paths))) < len(paths):
        raise DataError("a file of a chain is given twice")
    if _is_text(paths[0]):
        read = read_sampler_csv(paths)
        source = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        if not read.variables:
            raise DataError(f"{source} has no draws of any variable")
        return GivenDraws(source, read.variables, read.sample_stats)
    if len(paths) > 1:
        raise DataError(f"{paths[0]} is no CSV file: give one NetCDF file, or CSV files of chains")
    (path,) = paths
    if is_fit(path):
        return _of_fit(Fit.load(path), str(path))
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
    except _NOT_NETCDF as error:
        said = one_line(error)
        raise DataError(
            f"{path} is neither a CSV file of CmdStan's sampler nor a NetCDF file ({said})"
        ) from error
    return _of_groups(tree, str(path))


def _is_text(path: Path) -> bool:
    """Whether a file begins as a CSV file of CmdStan, or is text at all."""
    try:
        with path.open("rb") as file:
            beginning = file.read(4096)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return beginning.startswith(_TEXT) or b"\0" not in beginning


def _of_fit(fit: Fit, source: str) -> GivenDraws:
    if fit.extended is None:
        return _of_groups(fit.tree, source)
    weighed = fit.weighed_modes is not None and not np.ptp(fit.drawn_log_weight)
    method = fit.tree.attrs["method"]
    if method == IN_MODES:
        raise DataError(
            f"{source} has draws of NUTS in each mode, as many of a small mode as of a large one; "
            f"{_own_log_evidence(fit)}"
        )
    if fit.follows_path or not weighed:
        raise DataError(
            f"{source} is a tempered fit ({method}), whose draws are not those of a sampler of the "
            f"posterior itself; {_own_log_evidence(fit)}"
        )
    # Those of the posterior are chosen anew from all chains; their statistics and their order, by
    # which chains are compared and effective draws are counted, are those of the raw draws.
    stats = {} if "sample_stats" not in fit.tree else {"sample_stats": fit.sample_stats}
    return _of_groups({"posterior": fit.raw, **stats}, source)


def _own_log_evidence(fit: Fit) -> str:
    try:
        found = fit.log_evidence
    except DataError:
        return "sample with --method nuts"
    return f"it has its own log Z, {found.text}"


def _of_groups(groups: Any, source: str) -> GivenDraws:
    """Read ArviZ's groups ``posterior`` and ``sample_stats``."""
    posterior = _group(groups, "posterior")
    if posterior is None or not {"chain", "draw"} <= set(posterior.dims):
        raise DataError(f"{source} has no group posterior with the axes chain and draw")
    variables = {
        str(name): each.transpose("chain", "draw", ...).to_numpy().astype(np.float64)
        for name, each in posterior.data_vars.items()
        if {"chain", "draw"} <= set(each.dims) and each.dtype.kind in "biuf"
    }
    if not variables:
        raise DataError(f"{source} has no draws of any variable")
    found = _group(groups, "sample_stats")
    stats = {}
    for name in () if found is None else map(str, found.data_vars):
        if name in _STATS and {"chain", "draw"} <= set(found[name].dims):
            values = found[name].transpose("chain", "draw", ...).to_numpy()
            if values.shape == next(iter(variables.values())).shape[:2]:
                stats[name] = values.astype(_STATS[name])
    return GivenDraws(source, variables, stats)


def _group(groups: Any, name: str) -> Any:
    try:
        group = groups[name]
    except (KeyError, TypeError, AttributeError, IndexError):
        group = getattr(groups, name, None)
    if group is None:
        return None
    return group.to_dataset() if isinstance(group, xr.DataTree) else group
