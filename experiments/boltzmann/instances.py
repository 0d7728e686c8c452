"""Instances of the experiment, their bases, and what exact draws are made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.models.boltzmann import (
    BoltzmannMachine,
    BoltzmannRelaxation,
    ExactRelaxation,
    generate,
    relax,
    relaxation_of,
)
from harness.models.boltzmann_fold import mean_field_fold
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase
from harness.path.fold import Fold

PE_UNITS, CT_UNITS = 28, 30
"""Units d_b of the one instance of Nemeth et al. (2019) and of the ten of Graham and Storkey."""

_PE_SEED = 20191
_CT_SEED = 2017
_BASE_SEED = 0

AUTHORS_CT = tuple(f"params_and_moms_{i}.npz" for i in range(10))
"""Files of the continuous-tempering authors' ten instances: arrays ``weights``, ``biases``."""
AUTHORS_PE = "pe_paper_params_and_moms_d28.npz"
"""File of the pseudo-extended authors' instance, with the same arrays."""
AUTHORS_STORED = "pe_paper_relaxations_d28.npz"
"""File of the relaxation that their program reads, of another machine: arrays ``Q``, ``b``."""


@dataclass(frozen=True)
class Instance:
    """A relaxation with its base.

    Attributes
    ----------
    name
        Name for keys and factors of cells.
    relaxation
        The relaxation.
    base
        Gaussian with the moments of the mixture of mean-field approximations, and its guess at
        Z.
    """

    name: str
    relaxation: BoltzmannRelaxation
    base: GaussianBase

    @property
    def fold(self) -> Fold:
        """Mixture of the mean-field approximations with the highest bounds, to fold by."""
        return mean_field_fold(self.relaxation, np.random.default_rng(_BASE_SEED))

    @property
    def model(self) -> Model:
        """The relaxation as a model."""
        return self.relaxation.model(f"boltzmann-{self.name}")


def made(name: str, machine: BoltzmannMachine) -> Instance:
    """Relax a machine and fit its base."""
    return fitted(name, relax(machine))


def fitted(name: str, relaxation: BoltzmannRelaxation) -> Instance:
    """Fit the base of a relaxation."""
    base = mean_field_base(relaxation, np.random.default_rng(_BASE_SEED))
    return Instance(name, relaxation, base)


@cache
def pe_instance() -> Instance:
    """Draw the instance of the pseudo-extended half, d_b = 28, by the papers' recipe."""
    return made("d28", generate(PE_UNITS, np.random.default_rng(_PE_SEED)))


@cache
def ct_instance(number: int) -> Instance:
    """Draw one of the instances of the continuous-tempering half, d_b = 30."""
    rng = np.random.default_rng([_CT_SEED, number])
    return made(f"i{number}", generate(CT_UNITS, rng))


def users_instance(name: str, path: Path) -> Instance:
    """Read the machine of a file of the user's and relax it.

    Parameters
    ----------
    name
        Name of the instance.
    path
        NumPy archive with ``weights`` (d_b, d_b) and ``biases`` (d_b,); the moments that the
        authors keep beside them belong to their own choice of Q and are not read.

    Raises
    ------
    DataError
        If the file cannot be read, lacks an array, or holds no Boltzmann machine.
    """
    weights, biases = _arrays(path, "weights", "biases")
    np.fill_diagonal(weights, 0)
    return made(name, BoltzmannMachine((weights + weights.T) / 2, biases))


def users_relaxation(name: str, path: Path) -> Instance:
    """Read a relaxation of the user's, with its own choice of Q.

    Parameters
    ----------
    name
        Name of the instance.
    path
        NumPy archive with ``Q`` (d_b, d) and ``b`` (d_b,).

    Raises
    ------
    DataError
        If the file cannot be read, lacks an array, or their shapes do not belong together.
    """
    q, biases = _arrays(path, "Q", "b")
    if q.ndim != 2 or biases.shape != q.shape[:1]:
        raise DataError(
            f"{path}: 'Q' has shape (d_b, d) and 'b' (d_b,); got {q.shape} and {biases.shape}"
        )
    return fitted(name, relaxation_of(q, biases))


def _arrays(path: Path, *names: str) -> tuple[FloatArray, ...]:
    """Read arrays from a NumPy archive.

    Raises
    ------
    DataError
        If it cannot be read or lacks one.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return tuple(np.asarray(stored[name], dtype=np.float64) for name in names)
    except (OSError, ValueError, KeyError) as error:
        needed = " and ".join(f"'{name}'" for name in names)
        raise DataError(f"{path} is not an archive with the arrays {needed} ({error})") from None


def exact_relaxation(model: Model) -> ExactRelaxation:
    """Return the sums over the states of a model of an instance, which exact draws come from."""
    q, biases = (np.asarray(model.data[name], dtype=np.float64) for name in ("Q", "b"))
    return relaxation_of(q, biases).exact()
