"""Gene expression data for classification: the shipped data set, and those in a user's folder."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.errors import DataError
from harness.folders import shipped
from harness.models.horseshoe import Classification

ENDINGS = (".npz", ".csv", ".mat")
"""Endings of the files that :func:`load_classification` reads, in the order of its search."""

CLASS_COLUMN = "y"


def golub_leukemia() -> Classification:
    """Return leukaemia samples of Golub et al. (1999): 38 patients, 3,051 genes; class 1 is AML.

    References
    ----------
    Golub, T. R. et al. (1999). Molecular classification of cancer: class discovery and class
    prediction by gene expression monitoring. Science 286, 531-537.
    """
    path = shipped("data") / "horseshoe" / "golub_leukemia.npz"
    with np.load(path, allow_pickle=False) as stored:
        return Classification(
            stored["expression"].astype(np.float64), stored["is_aml"].astype(np.int64)
        )


def load_classification(folder: Path, name: str) -> Classification:
    """Read ``name.npz``, ``name.csv`` or ``name.mat`` from a folder, whichever exists first.

    An ``.npz`` or ``.mat`` file holds the arrays ``X`` (n, d) and ``Y`` with n entries; lower case
    names are accepted too.  A ``.csv`` file has a header line, one observation per line, and the
    class in the column ``y``.  The classes are any two numbers, such as 0 and 1, -1 and 1, or 1 and
    2; the larger one becomes 1.

    Parameters
    ----------
    folder
        Folder that the user has chosen.
    name
        Name of the data without its ending, such as ``colon``.

    Raises
    ------
    DataError
        If no such file exists, it cannot be read, ``X`` or ``Y`` is missing or not numeric, there
        are not exactly two classes, or reading a ``.mat`` file needs SciPy, which is missing.
    """
    for ending in ENDINGS:
        path = folder / f"{name}{ending}"
        if path.is_file():
            predictors, label = _READERS[ending](path)
            return _classification(predictors, label, path)
    wanted = ", ".join(f"{name}{ending}" for ending in ENDINGS)
    raise DataError(f"{folder} has none of {wanted}; put one of them there or name another folder")


def _classification(predictors: Any, label: Any, path: Path) -> Classification:
    try:
        x = np.asarray(predictors, dtype=np.float64)
        labels = np.asarray(label, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError(f"{path} has predictors or classes that are not numbers") from None
    classes = np.unique(labels)
    if len(classes) != 2 or not np.all(np.isfinite(classes)):
        raise DataError(f"{path} must have two classes; it has {classes.tolist()[:5]}")
    try:
        return Classification(x, (labels == classes[1]).astype(np.int64))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _pair(arrays: dict[str, npt.NDArray[Any]], path: Path) -> tuple[Any, Any]:
    found = {key.upper(): value for key, value in arrays.items()}
    if not {"X", "Y"} <= found.keys():
        names = ", ".join(arrays) or "none"
        raise DataError(f"{path} must hold the arrays X and Y; it holds {names}")
    return found["X"], found["Y"]


def _read_npz(path: Path) -> tuple[Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return _pair(dict(stored), path)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as arrays of numbers ({error})") from error


def _read_csv(path: Path) -> tuple[Any, Any]:
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a table ({error})") from error
    if CLASS_COLUMN not in table:
        raise DataError(f"{path} needs a header line with a column '{CLASS_COLUMN}', the class")
    return table.drop(columns=CLASS_COLUMN).to_numpy(), table[CLASS_COLUMN].to_numpy()


def _read_mat(path: Path) -> tuple[Any, Any]:
    try:
        # We do not require SciPy, because only files of this one format need it.
        matlab = importlib.import_module("scipy.io")
    except ImportError:
        raise DataError(
            f"{path} is a MATLAB file, which only SciPy reads: install scipy, or save its X "
            f"and Y as {path.stem}.npz or {path.stem}.csv"
        ) from None
    try:
        arrays = matlab.loadmat(path)
    except Exception as error:  # a damaged file may make its reader fail in any way
        raise DataError(f"{path} cannot be read as a MATLAB file ({error})") from error
    return _pair({k: v for k, v in arrays.items() if not k.startswith("__")}, path)


_READERS = {".npz": _read_npz, ".csv": _read_csv, ".mat": _read_mat}
