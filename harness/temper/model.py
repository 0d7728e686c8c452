"""A model made from a user's Stan program, with tempered forms that we write for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.engine.program import StanProgram
from harness.engine.stanli_package import stan_model
from harness.files import write_text
from harness.folders import cache_folder
from harness.model import Model, OwnBase
from harness.temper.classify import What
from harness.temper.program import VARIANTS, TemperedProgram, self_contained, temper_each


def tempered_model(
    path: Path,
    data: Mapping[str, Any],
    *,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
) -> Model:
    """Return the model of a Stan program with its data, for every method that tempers.

    Its programs are written to a folder in the cache that is named by a hash of their text.  The
    variant ``original`` is the program itself with its includes written out, for its transformed
    parameters and generated quantities; ``target`` has its density with all constants; ``prior``
    has the part of the density that is not tempered.

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
    written = temper_each(path, VARIANTS, what=what, include_paths=folders, data=data)
    programs = dict(zip(VARIANTS.values(), written, strict=True))
    texts: dict[str, str] = {variant: each.text for variant, each in programs.items()}
    texts["original"] = self_contained(path, include_paths=folders)
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
        parameters=tuple(any_form.parameters),
        dimension=int(target.n_unconstrained),
        transforms=any_form.coordinates.transforms,
        own_base=_own_base(any_form),
        prior_normalised=any_form.base_verdict == "normalised",
        flat=any_form.flat,
        questions=tuple(each.question for each in any_form.statements if each.unsure),
        no_gaussian_base=any_form.coordinates.reason,
        aliases={variant: each.names for variant, each in programs.items()},
        pseudo_names=any_form.parameters,
        pseudo_axis="first",
    )


def _own_base(program: TemperedProgram) -> OwnBase:
    """Return the kind of base that a program's untempered statements make."""
    if program.base_verdict == "improper":
        return "improper"
    return "prior" if program.what == "likelihood" else "flat"
