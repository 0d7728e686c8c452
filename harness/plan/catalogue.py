"""Find experiments: modules or packages in ``experiments`` that define ``EXPERIMENT``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from harness import folders
from harness.errors import DataError
from harness.folders import shipped
from harness.plan.spec import Experiment


def experiment_names() -> list[str]:
    """Return the names of the experiments, in alphabetical order."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    """Return the file of each experiment: ``NAME.py``, or ``NAME/__init__.py`` for a package."""
    folder = shipped("experiments")
    modules = {path.stem: path for path in folder.glob("*.py") if not path.stem.startswith("_")}
    return modules | {path.parent.name: path for path in folder.glob("*/__init__.py")}


def experiment_file(name: str) -> Path:
    """Return the file that defines an experiment.

    Raises
    ------
    DataError
        If there is no experiment with that name.
    """
    files = _files()
    if name not in files:
        raise DataError(
            f"there is no experiment '{name}'; the experiments are: {', '.join(experiment_names())}"
        )
    return files[name]


def load_experiment(name: str) -> Experiment:
    """Import an experiment's module and return its ``EXPERIMENT``.

    Raises
    ------
    DataError
        If there is no experiment with that name, or its file does not define it.
    """
    return load_file(name, experiment_file(name))


@cache
def load_file(name: str, file: Path) -> Experiment:
    """Import an experiment from its file; worker processes do so with the file that they are given.

    Parameters
    ----------
    name
        Name of the experiment.
    file
        ``NAME.py``, or ``NAME/__init__.py``.

    Raises
    ------
    DataError
        If the file does not define the experiment, or another package is in the way.
    """
    ours = file.is_relative_to(folders.shipped("experiments"))
    module = _shipped_module(name, file) if ours else _module_of(name, file)
    experiment = module.EXPERIMENT
    if not isinstance(experiment, Experiment) or experiment.name != name:
        raise DataError(f"{file} must define EXPERIMENT with name '{name}'")
    return experiment


def _shipped_module(name: str, file: Path) -> ModuleType:
    """Import a shipped experiment by name: processes that are sent parts of it import them so."""
    package = importlib.import_module(folders.shipped_package("experiments"))
    if Path(package.__path__[0]).resolve() != folders.shipped("experiments"):
        raise DataError(
            f"{file} cannot be imported because {package.__path__[0]} is in the way, which is "
            f"called '{package.__name__}', too; start harness in another folder"
        )
    return importlib.import_module(f"{package.__name__}.{name}")


def _module_of(name: str, file: Path) -> ModuleType:
    """Import an experiment that somebody has in another folder."""
    module_name = f"harness_experiments.{name}"
    spec = importlib.util.spec_from_file_location(
        module_name,
        file,
        submodule_search_locations=[str(file.parent)] if file.stem == "__init__" else None,
    )
    if spec is None or spec.loader is None:
        raise DataError(f"the experiment '{name}' cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module
