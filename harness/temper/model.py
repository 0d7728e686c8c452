"""A model of somebody's Stan program, whose tempered forms are written and not shipped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.density import stan_model
from harness.files import write_text
from harness.model import Model, OwnBase, StanProgram
from harness.paths import cache_folder
from harness.temper.classify import What
from harness.temper.program import VARIANTS, TemperedProgram, self_contained, temper


def tempered_programs(
    path: Path, *, what: What = "likelihood", include_paths: Iterable[Path] = ()
) -> dict[str, TemperedProgram]:
    """Temper a program in every way that there is.

    Returns
    -------
    dict
        By the name of the variant, as ``pseudo_extended``.

    Raises
    ------
    CompileError, DataError
        As :func:`harness.temper.temper`.
    """
    folders = tuple(include_paths)
    return {
        variant: temper(path, method=method, what=what, include_paths=folders)
        for method, variant in VARIANTS.items()
    }


def tempered_model(
    path: Path,
    data: Mapping[str, Any],
    *,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
) -> Model:
    """Return the model of a Stan program with its data, for every method that tempers.

    Its programs are written to a folder in the cache that is named by a hash of their text.

    Parameters
    ----------
    path
        The program.
    data
        Its data.
    what
        What is tempered; see :func:`harness.temper.temper`.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    DataError
        If it cannot be tempered, or its data are refused.
    ToolchainError
        If stanli is not installed, which counts the unconstrained parameters.
    """
    folders = tuple(include_paths)
    programs = tempered_programs(path, what=what, include_paths=folders)
    texts = {variant: each.text for variant, each in programs.items()}
    texts["target"] = self_contained(path, include_paths=folders)
    together = "\0".join(f"{name}\0{texts[name]}" for name in sorted(texts))
    digest = hashlib.sha256(together.encode()).hexdigest()
    folder = cache_folder("tempered") / digest[:32]
    for variant, text in texts.items():
        if not (folder / f"{variant}.stan").is_file():
            write_text(folder / f"{variant}.stan", text)
    target = stan_model(StanProgram(folder / "target.stan"), data)
    any_form = programs["pseudo_extended"]
    return Model(
        name=path.stem,
        folder=folder,
        data=data,
        parameters=any_form.parameters,
        dimension=int(target.n_unconstrained),
        own_base=_own_base(any_form),
        aliases={variant: each.names for variant, each in programs.items()},
        pseudo_axis="first",
    )


def _own_base(program: TemperedProgram) -> OwnBase:
    """Kind of base that is left where a program's tempered statements count nothing."""
    if set(program.uncovered) - set(program.bounded):
        return "improper"
    return "prior" if program.what == "likelihood" else "flat"
