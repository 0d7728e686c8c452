"""Base coordinates: the space that Gaussian bases live on, and how it relates to Stan's own.

A positive parameter's base coordinate is its logarithm, and any other parameter's is the parameter
itself (:attr:`harness.model.Model.transforms`).  They follow one another parameter by parameter,
each in Stan's column-major order.  They are the same as Stan's unconstrained parameters, with one
exception: Stan maps a parameter with two bounds onto the whole line by a scaled logit, while its
base coordinates stay inside the box.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model

Shapes = Mapping[str, tuple[int, ...]]
"""Shape of each parameter, () for a real."""


def flatten(model: Model, draws: Mapping[str, npt.ArrayLike], *, leading: int) -> FloatArray:
    """Turn draws of a model's parameters into base coordinates.

    Parameters
    ----------
    model
        The model.  Parameters in ``draws`` that the model does not have are left out.
    draws
        Arrays by name, each of shape (..., *shape of the parameter).
    leading
        Number of leading axes, which run over draws: 2 for (chain, draw, ...), 0 for one point.

    Returns
    -------
    FloatArray
        Shape (..., D).

    Raises
    ------
    DataError
        If a parameter is missing, the leading axes differ, the number of coordinates differs from
        the number of the model's unconstrained parameters, or a value is outside its parameter's
        support.
    """
    missing = [name for name in model.parameters if name not in draws]
    if missing:
        raise DataError(f"draws of {model.name} need its parameter {', '.join(missing)}")
    arrays = {name: np.asarray(draws[name], dtype=np.float64) for name in model.parameters}
    axes = {array.shape[:leading] for array in arrays.values()}
    if len(axes) != 1 or any(array.ndim < leading for array in arrays.values()):
        raise DataError(f"draws of {model.name} must share {leading} leading axes; got {axes}")
    (ahead,) = axes
    columns = []
    for name, array in arrays.items():
        # The first index of a parameter runs fastest, so reverse its axes and read row by row.
        own = range(leading, array.ndim)
        size = int(np.prod(array.shape[leading:], dtype=np.int64))
        flat = array.transpose((*range(leading), *reversed(own))).reshape((*ahead, size))
        columns.append(_to_base(model, name, flat))
    coordinates = np.concatenate(columns, axis=-1)
    if coordinates.shape[-1] != model.dimension:
        raise DataError(
            f"{model.name} has dimension {model.dimension}; these draws have "
            f"{coordinates.shape[-1]} coordinates (a parameter whose constraint removes a degree "
            f"of freedom, such as a simplex, has no base coordinates)"
        )
    return coordinates


def unflatten(model: Model, points: npt.ArrayLike, shapes: Shapes) -> dict[str, FloatArray]:
    """Turn base coordinates back into parameters, for instance to use them as starting values.

    Parameters
    ----------
    points
        Shape (..., D).
    shapes
        Shape of each parameter.

    Returns
    -------
    dict
        Arrays by name, each of shape (..., *shape of the parameter).

    Raises
    ------
    DataError
        If the shapes do not add up to the points' last axis.
    """
    coordinates = np.asarray(points, dtype=np.float64)
    place = _columns(model, shapes)
    if coordinates.ndim == 0 or coordinates.shape[-1] != model.dimension:
        raise DataError(
            f"points of {model.name} need a last axis of {model.dimension} coordinates; got shape "
            f"{coordinates.shape}"
        )
    ahead = coordinates.ndim - 1
    values = {}
    for name in model.parameters:
        flat = coordinates[..., place[name]]
        if model.transforms.get(name) == "log":
            flat = np.exp(flat)
        shaped = flat.reshape((*coordinates.shape[:-1], *reversed(shapes[name])))
        own = range(ahead, shaped.ndim)
        values[name] = shaped.transpose((*range(ahead), *reversed(own)))
    return values


class StanCoordinates:
    """Convert between base coordinates and Stan's unconstrained parameters.

    Parameters
    ----------
    model
        The model, whose ``bounds`` say where the two spaces differ.
    shapes
        Shape of each parameter.
    """

    def __init__(self, model: Model, shapes: Shapes) -> None:
        place = _columns(model, shapes)
        self._lower, self._width = np.zeros(model.dimension), np.ones(model.dimension)
        self._boxed = np.zeros(model.dimension, dtype=np.bool_)
        for name, (lower, upper) in model.bounds.items():
            self._lower[place[name]], self._width[place[name]] = lower, upper - lower
            self._boxed[place[name]] = True

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the base coordinates, (D,) each; infinite if there are none."""
        lower = np.where(self._boxed, self._lower, -np.inf)
        upper = np.where(self._boxed, self._lower + self._width, np.inf)
        return lower, upper

    def inside(self, base: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether points of shape (..., D) are finite and inside all bounds; shape (...)."""
        share = (base - self._lower) / self._width
        within = np.isfinite(base) & (~self._boxed | ((share > 0) & (share < 1)))
        result: npt.NDArray[np.bool_] = np.all(within, axis=-1)
        return result

    def to_stan(self, base: FloatArray) -> FloatArray:
        """Turn base coordinates (..., D) inside the bounds into Stan's unconstrained parameters."""
        stan = np.array(base, dtype=np.float64)
        share = ((stan - self._lower) / self._width)[..., self._boxed]
        stan[..., self._boxed] = np.log(share) - np.log1p(-share)
        return stan

    def to_base(self, stan: FloatArray) -> FloatArray:
        """Turn Stan's unconstrained parameters (..., D) into base coordinates."""
        base = np.array(stan, dtype=np.float64)
        share = _logistic(base[..., self._boxed])
        base[..., self._boxed] = self._lower[self._boxed] + self._width[self._boxed] * share
        return base

    def density_on_base(
        self, stan: FloatArray, log_density: FloatArray, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Carry a log density and its gradient from Stan's parameters over to base coordinates.

        log p(base) = log p(stan) - sum log |d base / d stan|.  With s the position in the box,
        from 0 to 1, d base / d stan = width s (1 - s).

        Parameters
        ----------
        stan
            Stan's unconstrained parameters, shape (..., D).
        log_density, gradient
            Log density there, including Stan's Jacobian, shape (...), and its gradient, (..., D).
        """
        v = stan[..., self._boxed]
        width = self._width[self._boxed]
        share = _logistic(v)
        # log s (1 - s), the same for v and -v, without overflow.
        log_slope = np.log(width) - np.abs(v) - 2 * np.log1p(np.exp(-np.abs(v)))
        carried = np.array(gradient, dtype=np.float64)
        carried[..., self._boxed] -= 1 - 2 * share
        carried[..., self._boxed] /= np.exp(log_slope)
        return log_density - log_slope.sum(axis=-1), carried


def _columns(model: Model, shapes: Shapes) -> dict[str, slice]:
    """Return which of the coordinates belong to each parameter."""
    place, start = {}, 0
    for name in model.parameters:
        if name not in shapes:
            raise DataError(f"the shape of {model.name}'s parameter {name} is missing")
        size = int(np.prod(shapes[name], dtype=np.int64))
        place[name] = slice(start, start + size)
        start += size
    if start != model.dimension:
        raise DataError(
            f"{model.name} has dimension {model.dimension}, but its parameters have {start} values"
        )
    return place


def _to_base(model: Model, name: str, values: FloatArray) -> FloatArray:
    if model.transforms.get(name) == "log":
        if not np.all(values > 0):
            raise DataError(f"{name} of {model.name} must be positive in every draw")
        logarithm: FloatArray = np.log(values)
        return logarithm
    lower, upper = model.bounds.get(name, (-np.inf, np.inf))
    if not np.all((values >= lower) & (values <= upper)):
        raise DataError(f"{name} of {model.name} must lie in [{lower}, {upper}] in every draw")
    return values


def _logistic(v: FloatArray) -> FloatArray:
    """1 / (1 + exp(-v)) without overflow."""
    small = np.exp(-np.abs(v))
    result: FloatArray = np.where(v >= 0, 1, small) / (1 + small)
    return result
