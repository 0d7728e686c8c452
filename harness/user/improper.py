"""Directions in which a posterior does not end, so that its draws, means and log Z do not exist.

A parameter without a prior may have a likelihood that does not fall off: degrees of freedom, the
slope of a logistic regression whose groups are separated, a scale whose prior is 1 / tau.  Chains
end somewhere all the same, bridges and paths have small errors, and what they show depends on where
the computer's numbers end.

So each coordinate u is followed outwards in steps that become longer and longer, with all others
where the density is highest.  What the posterior has at u is Laplace's approximation to the
integral over the others.  If that times the distance, the mass of each doubling, does not fall as
long as there are numbers, the posterior's integral is infinite.  With a density like 1 / u it stays
as it is, and it falls by half with that of a Cauchy tail.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.diagnosis import Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.errors import SamplingError
from harness.evidence import standard_deviation
from harness.model import Model
from harness.modes.climb import climb, everywhere
from harness.modes.limited import Limited
from harness.modes.local_mass import LocalGaussian, local_gaussian
from harness.modes.table import labels_of

_log = logging.getLogger(__name__)

_STEPS = 80
_FACTOR = np.sqrt(2.0)
"""How many steps outwards, and how much further each of them is than the one before."""
_LAST = 6
"""Steps at the end at which the mass must not fall: these take a path eight times as far."""
_FALLS = 0.08
"""Nats by which the mass must fall with each, on average, to be that of a tail that ends."""
_GIVEN_UP = 10.0
"""Nats below the largest mass of a step, at which a tail is known to end."""
_NEWTON, _HALVINGS, _ARRIVED = 12, 8, 0.02
"""Newton steps to the top of a slice, how often each is halved at most, and the nats that a step
promises at which it has arrived."""
_WIDER, _LEAST_FALL, _MOST_FALL = 500, 0.1, 3.0
"""Times that a width is doubled or halved at most, and the nats by which a density falls within a
width."""
_UNEQUAL = 1e4
"""Ratio of a slice's widths from which on the next slice may be narrower than numbers tell."""
_SHIFT = 1e-3
"""Difference for second derivatives, in spreads."""
_EDGE = 25.0
"""Size of the logarithm of a number from which on functions of it may be nothing but rounding."""
_ROUNDING = 1e-6
_PLACES, _NOISE = np.linspace(-1, 1, 9), 1.0
"""Places within a width, and the nats by which differences between them are not what slopes tell.
"""
_SHOWN = 3


class Tail(NamedTuple):
    """A direction in which the density does not fall off.

    Attributes
    ----------
    label
        The number among the program's parameters that changes most.
    near, far
        From where to where it was followed.
    """

    label: str
    near: float
    far: float


def has_proper_prior(model: Model) -> bool:
    """Whether a program's text shows that its prior is proper.

    With it the posterior is so, too, unless the likelihood has no bound.
    """
    return model.own_base == "prior" and model.log_prior_integral is not None


def unending_tails(
    density: BatchedDensity, points: FloatArray, *, most_seconds: float
) -> list[Tail]:
    """Follow each coordinate of a posterior outwards, and return where it does not end.

    Parameters
    ----------
    density
        Of the program.
    points
        Draws on the unconstrained space, shape (..., D); there may be none.
    most_seconds
        Seconds of wall time, roughly, after which nothing further is looked at.
    """
    found: dict[str, Tail] = {}
    try:
        for path in _unending(Limited(density, most_seconds), points.reshape(-1, points.shape[-1])):
            tail = _told(density, path)
            found.setdefault(tail.label, tail)
    except SamplingError as error:
        _log.info("Not all tails of the posterior are looked at: %s", error)
    return list(found.values())


def _unending(density: Limited, draws: FloatArray) -> Iterator[_Path]:
    """Yield paths on which the mass does not fall, from the first beginning that has any."""
    began, settled, any_found = time.perf_counter(), set[int](), False
    begins = _begins(density, draws)
    for number, begin in enumerate(begins, start=1):
        until = began + density.most_seconds * number / len(begins)
        for k in range(len(begin.point)):
            if k in settled:
                continue
            paths = [_Path(density, begin, k, direction) for direction in (-1.0, 1.0)]
            for path in paths:
                while time.perf_counter() < until and path.go_on():
                    pass
                if path.unending:
                    any_found = True
                    yield path
            if all(path.ends for path in paths):
                settled.add(k)
        if any_found:
            return


class _Begin(NamedTuple):
    """Where paths begin.

    Attributes
    ----------
    point
        The point, shape (D,).
    width
        How wide the density is there along each coordinate, shape (D,).
    is_number
        Whether each coordinate is a number of the program's, and not a logarithm of one or of a
        ratio, shape (D,).
    """

    point: FloatArray
    width: FloatArray
    is_number: npt.NDArray[np.bool_]


def _begin(
    density: BatchedDensity | Limited, point: FloatArray, spread: FloatArray
) -> _Begin | None:
    """Return a path's beginning; its first step is no longer than the spread of each coordinate.

    None if the density there is mostly rounding: then its differences are not what slopes tell.
    """

    def along(places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log densities and slopes along each coordinate by itself, at places (n, D) from here."""
        rows = point + places[:, :, None] * np.eye(len(point))
        value, gradient = density(rows.reshape(-1, len(point)))
        return value.reshape(places.shape), np.diagonal(gradient.reshape(rows.shape), 0, 1, 2)

    down, up = along(np.array([[-_SHIFT], [_SHIFT]]) * spread)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        width = 1 / np.sqrt((down - up) / (2 * _SHIFT * spread))
    width = np.where(np.isfinite(width), np.minimum(width, spread), spread)
    value, slope = along(_PLACES[:, None] * width)
    told = 0.5 * (slope[1:] + slope[:-1]) * np.diff(_PLACES)[:, None] * width
    with np.errstate(invalid="ignore"):  # where there is no density
        rounding = np.abs(np.diff(value, axis=0) - told)
    if not np.all(rounding < _NOISE):
        return None
    steps = point + np.arange(3)[:, None, None] * np.eye(len(point))
    values = density.constrain(steps.reshape(-1, len(point))).values()
    flat = np.concatenate([each.reshape(*steps.shape[:2], -1) for each in values], axis=2)
    one, two = np.abs(flat[1] - flat[0]).max(axis=1), np.abs(flat[2] - flat[1]).max(axis=1)
    is_number = (np.abs(one - 1) < _ROUNDING) & (np.abs(two - 1) < _ROUNDING)
    return _Begin(point, width, is_number)


def _begins(density: BatchedDensity | Limited, draws: FloatArray) -> list[_Begin]:
    """Return where paths begin.

    That is the draw (n, D) that is nearest to the median; and the middle of Stan's starting points,
    because chains of an improper posterior may be where numbers end already.
    """
    found = []
    finite = draws[np.all(np.isfinite(draws), axis=1)]
    if len(finite):
        spread = standard_deviation(finite, 1)
        spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
        apart = (finite - np.median(finite, axis=0)) / spread
        found.append(_begin(density, finite[np.square(apart).sum(axis=1).argmin()], spread))
    middle = np.zeros(draws.shape[1])
    if np.isfinite(density.values(middle[None])[0]):
        found.append(_begin(density, middle, np.ones(draws.shape[1])))
    return [each for each in found if each is not None]


class _Path:
    """A path from a draw along one coordinate, in one direction.

    Attributes
    ----------
    k
        Number of the coordinate.
    points
        Where the density is highest on each slice, beginning with the draw.
    log_masses
        Log of the mass of each step.
    reached_end
        Whether it has gone as far as there are numbers.
    """

    def __init__(
        self, density: BatchedDensity | Limited, begin: _Begin, k: int, direction: float
    ) -> None:
        self._density, self.k = density, k
        self._others = np.delete(np.arange(len(begin.point)), k)
        self._at, self._is_number = begin.point[k], begin.is_number[k]
        self._first = direction * begin.width[k]
        self._widths = begin.width[self._others]
        self.points = [begin.point]
        self.log_masses: list[float] = []
        self.reached_end = False
        self._unequal, self._no_density = 1.0, False

    def go_on(self) -> bool:
        """Go a step further, and return whether there may be more."""
        number = len(self.log_masses)
        at = self._at + self._first * _FACTOR**number
        found = self._top(at)
        if found is None:
            # Where a number itself has no density, the program has an end that it does not declare.
            underflows = abs(at) >= _EDGE and not (self._is_number and self._no_density)
            self.reached_end = underflows or self._unequal > _UNEQUAL
            return False
        point, log_marginal = found
        self.points.append(point)
        self.log_masses.append(log_marginal + number * np.log(_FACTOR))
        # Logarithms of what has small units, or large ones, are large from the beginning.
        far = abs(at - self._at) if abs(self._at) > _EDGE else abs(at)
        self.reached_end = number + 1 == _STEPS or (far > _EDGE and not self._is_number)
        return not (self.reached_end or self.ends)

    @property
    def unending(self) -> bool:
        """Whether the mass of its last steps, as far as there are numbers, does not fall."""
        masses = self.log_masses
        enough = self.reached_end and len(masses) > _LAST
        return enough and masses[-1] >= max(masses) - _FALLS * _LAST

    @property
    def ends(self) -> bool:
        """Whether its mass falls before numbers end."""
        masses = self.log_masses
        return len(masses) > 0 and masses[-1] <= max(masses) - _GIVEN_UP

    def _top(self, at: float) -> tuple[FloatArray, float] | None:
        """Return the highest point of a slice, and the log of the slice's integral by Laplace.

        By Newton's method, because slices of a neck are so narrow that a climb does not get there.
        None if there is no top or no density.
        """

        def whole(rows: FloatArray) -> FloatArray:
            points = np.empty((len(rows), len(self._others) + 1))
            points[:, self._others], points[:, self.k] = rows, at
            return points

        def on_slice(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, gradient = self._density(whole(rows))
            return np.where(value < np.inf, value, -np.inf), gradient[:, self._others]

        guesses = np.stack(self._guesses())
        value = on_slice(guesses)[0]
        if not np.any(np.isfinite(value)):
            self._no_density = True
            return None
        top = guesses[value.argmax()]
        if not top.size:
            return whole(top[None])[0], float(value.max())
        for _ in range(_NEWTON):
            local = self._gaussian(top, on_slice)
            if local is None:
                return None
            top = local.peak
            slope = on_slice(top[None])[1][0]
            step = local.at(np.linalg.solve(local.root, slope * local.scale)[None])[0] - top
            if slope @ step < _ARRIVED:
                self._widths = local.widths
                self._unequal = float(np.linalg.cond(local.root))
                log_volume = local.log_volume + _log_wider(local, on_slice)
                return whole(top[None])[0], local.height + log_volume
            tried = top + step * 0.5 ** np.arange(_HALVINGS)[:, None]
            value = on_slice(tried)[0]
            if not np.any(value > local.height):
                return None
            top = tried[value.argmax()]
        return None

    def _gaussian(self, point: FloatArray, on_slice: LogDensity) -> LocalGaussian | None:
        """Return the Gaussian that fits a slice at a point, or else where a climb from it ends."""
        local = local_gaussian(point, on_slice, scale=self._widths)
        if local is not None:
            return local
        box = everywhere(len(point))
        climbed = climb(point[None], on_slice, scale=self._widths, box=box)
        return local_gaussian(climbed.points[0], on_slice, scale=self._widths)

    def _guesses(self) -> list[FloatArray]:
        """Return the last top, and where the next one is if all coordinates go on as they went."""
        last = self.points[-1][self._others]
        if len(self.points) < 3:
            return [last]
        return [last, last + _FACTOR * (last - self.points[-2][self._others])]


def _log_wider(local: LocalGaussian, log_density: LogDensity) -> float:
    """Return the log of how much wider a density is than its Gaussian, along all axes together.

    At the top of a plateau, as separated groups have one, there is hardly any curvature.
    """
    axes, wider = np.eye(len(local.peak)), np.ones(len(local.peak))
    turned = np.zeros(len(local.peak))
    for _ in range(_WIDER):
        either = np.concatenate([axes, -axes]) * np.tile(wider, 2)[:, None]
        with np.errstate(invalid="ignore"):
            fall = local.height - log_density(local.at(either))[0].reshape(2, -1).min(axis=0)
        way = np.where(fall < _LEAST_FALL, 1.0, np.where(fall < _MOST_FALL, 0.0, -1.0))
        way[way * turned < 0] = 0.0  # the density falls at once from less to more than that
        if not np.any(way):
            break
        wider *= 2**way
        turned = np.where(way != 0, way, turned)
    return float(np.log(wider).sum())


def _told(density: BatchedDensity, path: _Path) -> Tail:
    """Name the number among the parameters that a path's own coordinate changes most."""
    near, far = path.points[0], path.points[-1].copy()
    before = far.copy()
    before[path.k] = near[path.k]
    best, found = -1.0, Tail("", 0.0, 0.0)
    for name, values in density.constrain(np.stack([near, before, far])).items():
        labels = labels_of(name, values.shape[1:])
        for label, *each in zip(labels, *values.reshape(3, -1), strict=True):
            changed = abs(float(np.diff(np.arcsinh(each[1:]))[0]))
            if changed > best:
                best, found = changed, Tail(label, float(each[0]), float(each[2]))
    return found


def about_unending(tails: Sequence[Tail]) -> list[Finding]:
    """Report that the posterior is improper."""
    if not tails:
        return []
    shown = " or ".join(
        f"{each.label} goes from {each.near:.3g} to {each.far:.3g}" for each in tails[:_SHOWN]
    )
    return [
        Finding(
            Severity.PROBLEM,
            "The posterior is improper, as far as the computer's numbers reach: its mass does not "
            f"fall off as {shown}. So it has no draws, no means and no log Z, and what is shown "
            "depends on where the sampler happened to end.",
            "Give these parameters proper priors that fall off there.",
        )
    ]
