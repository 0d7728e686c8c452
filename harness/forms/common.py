"""What all forms share before and after they sample: engines, data, programs, attributes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Literal, get_args

import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs, source_digest
from harness.engine.iterations import Follow
from harness.engine.nuts import NutsRun, NutsSettings, run_nuts
from harness.engine.stan_data import numbers_in
from harness.engine.stanli_apart import stanli_nuts
from harness.engine.stanli_package import stanli_is_installed
from harness.engine.toolchain import require_cmdstan, why_no_compiler
from harness.engine.toolchain.tools import HOW_TO_INSTALL_STANLI
from harness.errors import DataError, ToolchainError
from harness.model import Model

_log = logging.getLogger(__name__)

Engine = Literal["auto", "cmdstan", "stanli"]
"""What runs Stan's NUTS.

``cmdstan``: an executable built with the C++ compiler, which is the reference.  ``stanli``: the
optional package of that name, in this process and without a compiler.  ``auto``: CmdStan, or stanli
if there is no compiler.
"""

PACKAGE = {"cmdstan": "cmdstanpy", "stanli": "stanli"}
"""Python package of each engine, whose version is kept with what it made."""

Inits = Any
"""Initial values as CmdStanPy takes them: a number or a mapping by name, for one chain or all."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """How Stan's NUTS is run; this is the same for every form.

    Attributes
    ----------
    seed
        Seed, 0 to 2^32 - 1.  The same seed gives the same draws, including the choice among
        weighted draws.
    nuts
        Settings of NUTS; Stan's defaults if not given.
    inits
        Initial values as CmdStanPy takes them; Stan's own random ones if not given.
    inv_metric
        Inverse metric that NUTS keeps; see :func:`harness.engine.nuts.run_nuts`.
    compiled
        The program's executable; if not given, CmdStan's engine compiles the program.
    engine
        What runs it; see :data:`Engine`.
    follow
        Is told how far the run is; see :data:`~harness.engine.iterations.Follow`.

    Raises
    ------
    DataError
        If there is no such engine, or the stanli engine is given something that it does not take.
    """

    seed: int
    nuts: NutsSettings = field(default_factory=NutsSettings)
    inits: Inits = None
    inv_metric: FloatArray | None = None
    compiled: CompiledProgram | None = None
    engine: Engine = "auto"
    follow: Follow | None = None

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            known = ", ".join(get_args(Engine))
            raise DataError(f"the engine must be one of {known}; got '{self.engine}'")
        if self.engine == "stanli" and self.compiled is not None:
            raise DataError(
                "a compiled program runs in CmdStan: leave it out, or use engine='cmdstan'"
            )


@dataclass(frozen=True)
class VariantRun:
    """A run of a variant of a model, with the program that made it.

    Attributes
    ----------
    run
        The run, with the program's generated quantities under the names that methods use.
    parameters
        Draws of the target's parameters by their names, shape (chain, draw, ...).  Those of
        pseudo-samples have one more axis, the last, over pseudo-samples.
    """

    run: NutsRun
    parameters: Mapping[str, FloatArray]
    nuts: NutsSettings
    engine: Engine
    program: str
    digest: str


def variant_data(model: Model, variant: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return all data of a variant: the model's, and ``data`` under the names of its program."""
    return {**model.data, **_aliased(data, model.aliases.get(variant, {}))}


def run_variant(
    model: Model,
    variant: str,
    data: Mapping[str, Any],
    run: Run,
    *,
    pseudo_samples: bool = False,
) -> VariantRun:
    """Run NUTS on a variant of a model; its program is compiled now or found in the cache.

    Parameters
    ----------
    data
        Data that the variant takes in addition to the model's own.
    pseudo_samples
        Whether the variant's parameters have an axis over pseudo-samples.

    Raises
    ------
    DataError
        If a number in the data is NaN; this is checked before anything is compiled.
    """
    nuts = run.nuts
    aliases = model.aliases.get(variant, {})
    names = model.pseudo_names if pseudo_samples else {}
    inits = _named_inits(
        run.inits, {**aliases, **{each: each for each in model.parameters}, **names}
    )
    everything = variant_data(model, variant, data)
    for name, value in everything.items():
        for part, array in numbers_in(name, value):
            if np.any(np.isnan(array.astype(np.float64))):
                raise DataError(
                    f"{part} in the data of {model.name} holds NaN: correct it or leave it out"
                )
    if _engine(run) == "stanli":
        program = model.program(variant)
        made = stanli_nuts(
            program,
            everything,
            nuts,
            run.seed,
            inits=inits,
            inv_metric=run.inv_metric,
            follow=run.follow,
        )
        parameters = _parameters(model, made, names)
        made = _named_as_methods_do(made, aliases)
        return VariantRun(made, parameters, nuts, "stanli", program.name, source_digest(program))
    compiled = run.compiled or compiled_variant(model, variant)
    made = run_nuts(
        compiled,
        everything,
        nuts,
        run.seed,
        inits=inits,
        inv_metric=run.inv_metric,
        follow=run.follow,
    )
    parameters = _parameters(model, made, names)
    made = _named_as_methods_do(made, aliases)
    return VariantRun(made, parameters, nuts, "cmdstan", compiled.program.name, compiled.digest)


def _aliased(values: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Give values the names that a variant's program uses."""
    return {aliases.get(name, name): value for name, value in values.items()}


def _named_inits(inits: Inits, names: Mapping[str, str]) -> Inits:
    if isinstance(inits, Mapping):
        return _aliased(inits, names)
    if isinstance(inits, (list, tuple)):
        return [_named_inits(each, names) for each in inits]
    return inits


def _parameters(model: Model, run: NutsRun, names: Mapping[str, str]) -> dict[str, FloatArray]:
    """Return the target's parameters by the model's names; a folded program writes none."""
    written = {name: names.get(name, name) for name in model.parameters}
    found = {name: run.variables[n] for name, n in written.items() if n in run.variables}
    if names and model.pseudo_axis == "first":
        return {name: np.moveaxis(draws, 2, -1) for name, draws in found.items()}
    return found


def _named_as_methods_do(run: NutsRun, aliases: Mapping[str, str]) -> NutsRun:
    """Give a run's variables the names that methods use."""
    ours = {theirs: name for name, theirs in aliases.items()}
    return replace(run, variables=_aliased(run.variables, ours))


def _engine(run: Run) -> Engine:
    return "cmdstan" if run.compiled is not None else chosen_engine(run.engine)


def chosen_engine(engine: Engine) -> Engine:
    """Return the engine that ``auto`` stands for here; log a warning if it is not CmdStan.

    Raises
    ------
    ToolchainError
        If there is neither a compiler nor stanli.
    """
    if engine != "auto":
        return engine
    reason = why_no_compiler()
    if reason is None:
        return "cmdstan"
    if not stanli_is_installed():
        raise ToolchainError(
            f"{reason}\nWithout a compiler Stan can run through the optional package stanli: "
            f"{HOW_TO_INSTALL_STANLI}"
        )
    _log.warning("%s Running in the stanli engine, which needs none.", reason)
    return "stanli"


def compiled_variant(model: Model, variant: str) -> CompiledProgram:
    """Return a compiled variant of a model; it is found in the cache or compiled now.

    Raises
    ------
    ToolchainError
        If there is no CmdStan and none can be assembled; the message says how to go without one.
    """
    program = model.program(variant)
    try:
        cmdstan = require_cmdstan()
    except ToolchainError as error:
        raise ToolchainError(
            f"{error}\nengine='stanli' needs neither CmdStan nor a C++ compiler: "
            f"{HOW_TO_INSTALL_STANLI}"
        ) from error
    return compile_programs([program], cmdstan)[program]


def run_attributes(
    method: str, model: Model, ran: VariantRun, settings: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return a fit's attributes: what was run, with which settings, and what it cost.

    Gradient evaluations and seconds have one entry for each chain.
    """
    run = ran.run
    return {
        "method": method,
        "engine": ran.engine,
        "model": model.name,
        "program": ran.program,
        "program_sha256": ran.digest,
        "settings": {**settings, "nuts": ran.nuts.identity()},
        "seed": seed,
        "gradients_warmup": run.gradients[:, 0],
        "gradients_sampling": run.gradients[:, 1],
        "seconds_warmup": run.seconds[:, 0],
        "seconds_sampling": run.seconds[:, 1],
        "final_step_size": run.step_size,
        "stan_version": run.stan_version,
        f"{PACKAGE[ran.engine]}_version": version(PACKAGE[ran.engine]),
        "harness_version": version("harness"),
    }
