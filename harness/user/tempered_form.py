"""A tempered form of a user's program along the search's path: compared, run and continued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import remember
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.iterations import Follow
from harness.engine.nuts import NutsSettings
from harness.engine.restarts import started_anew
from harness.engine.short_nuts import affordable
from harness.errors import DataError
from harness.evidence import WHOLE_BASE
from harness.fit import Fit
from harness.forms.common import Run, variant_data
from harness.forms.continuous_tempering import (
    ZERO_LIKELIHOOD,
    CollapsedTempering,
    JointTempering,
)
from harness.forms.form import Form, sample
from harness.forms.from_pilot import scouted_ladder
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.path import starting_values
from harness.path.data import TemperedPath
from harness.temper.edited import UNEDITED
from harness.user.agreement import difference_by_editing, disagreement
from harness.user.program import UserProgram, chains_failed
from harness.user.scouted import FoundPath

_COST = 2.0
"""Cost of a gradient of a tempered form, over that of the target."""
_PRIOR_DRAWS, _PRIOR_VARIANCE = 5, 1e-3
"""Stan's adaptation shrinks variances towards the second, with the weight of so many draws."""

Tempered = Literal["collapsed_tempering", "joint_tempering", "pseudo_extended"]
"""Methods that temper, each a form by its name; see :data:`harness.user.sample.Method`."""


def edited_method(model: Model) -> Tempered | None:
    """Return the method that runs an edited tempered program; None if there is no such program.

    Raises
    ------
    DataError
        If no method runs it.
    """
    edited = model.edited
    if edited is None:
        return None
    for method in get_args(Tempered):
        if edited == method or (edited == ZERO_LIKELIHOOD and method == "collapsed_tempering"):
            return cast(Tempered, method)
    raise DataError(f"no method of harness sample runs a tempered program of the form {edited}")


@dataclass(frozen=True)
class TemperedForm:
    """A form of a program along a path.

    Attributes
    ----------
    program
        The program; what it has compiled is used.
    method
        The method, which decides the form.
    path
        The search's path.
    num
        Number N of pseudo-samples; the other methods do not use it.
    """

    program: UserProgram
    method: Tempered
    path: FoundPath
    num: int

    @cached_property
    def form(self) -> Form:
        """The form that the method runs.

        Raises
        ------
        DataError
            If the edited program cannot pass through points where the likelihood is zero, and there
            are many.
        """
        edited = self.program.model.edited
        match self.method:
            case "pseudo_extended":
                return PseudoExtended(self.num)
            case "joint_tempering":
                return JointTempering()
            case "collapsed_tempering":
                if self.path.zero_likelihood and edited == self.method:
                    raise DataError(
                        f"{self.program.path}: the likelihood is zero on a share of the prior, "
                        "where the edited program cannot pass: edit the one of --method "
                        f"{ZERO_LIKELIHOOD}"
                    )
                zero_likelihood = self.path.zero_likelihood or edited == ZERO_LIKELIHOOD
                return CollapsedTempering(zero_likelihood=zero_likelihood)

    @property
    def variant(self) -> str:
        """Name of its program among the variants of the model."""
        return self.form.program

    @property
    def has_copies(self) -> bool:
        """Whether the path has all copies of the posterior: one from a Gaussian need not."""
        return self.path.base is None

    @cached_property
    def along(self) -> TemperedPath:
        """The search's path as the form takes it.

        Log weights of a ladder make a run visit its rungs evenly.  The pilot's normalising
        constant at beta = 0 is that of the base where the likelihood is above zero, but the rung at
        0 reaches everything that the program does not reject, which draws of the prior tell.
        """
        path, prior = self._unmeasured, self.path.prior
        if path.log_g is None or not path.ladder:
            return path
        (_, _), *others = path.log_g
        reached = WHOLE_BASE
        if prior is not None and self.path.zero_likelihood:
            program = self.program.model.program(self.variant)
            density = BatchedDensity(program, self.data_to_compile, threads=cores())
            reached = prior.share_with(density)
        return replace(path, log_g=((0.0, -reached.value), *others))

    @property
    def _unmeasured(self) -> TemperedPath:
        found, on_ladder = self.path.found, self.method == "collapsed_tempering"
        return TemperedPath(
            base=self.path.base,
            log_zeta=found.base.log_zeta,
            log_g=scouted_ladder(found) if on_ladder else found.log_g_by_rung,
            ladder=on_ladder,
            # Draws of the base tell this share better than chains do, which seldom pass its edge.
            base_mass=self.path.positive,
            log_factor=self.path.log_factor,
            positive_only=on_ladder,
        )

    @property
    def data(self) -> dict[str, Any]:
        """Data of the form's program."""
        return self._data(self.along)

    @property
    def data_to_compile(self) -> dict[str, Any]:
        """Data of the form's program before what the ladder's rung at 0 reaches is measured."""
        return self._data(self._unmeasured)

    def _data(self, along: TemperedPath) -> dict[str, Any]:
        model = self.program.model
        return variant_data(model, self.variant, self.form.data(model, along))

    def disagreement(self, seed: int) -> str | None:
        """Say how stanli's density of the form differs from the compiled program's.

        Returns None if they agree, and also if the form is not compiled.
        """
        compiled = self.program.compiled.get(self.variant)
        if compiled is None:
            return None
        return disagreement(
            compiled, self.program.model.program(self.variant), self.data, seed=seed
        )

    def difference_by_editing(self, seed: int) -> str | None:
        """Say how the density of an edited tempered program differs from the one we would write."""
        model = self.program.model
        if model.edited != self.variant:
            return None
        unedited, edited = map(model.program, (UNEDITED, model.edited))
        return difference_by_editing(unedited, edited, self.data, seed=seed)

    def affordable(self, nuts: NutsSettings, most_seconds: float) -> NutsSettings:
        """Return settings of a run by stanli, which nothing can stop, for the time left.

        Parameters
        ----------
        nuts
            Those that are wanted; CmdStan, which is quicker, takes them as they are.
        most_seconds
            Seconds that it may take, roughly.
        """
        if self.program.engine != "stanli":
            return nuts
        return affordable(nuts, self._target, most_seconds, weight=_COST)

    def run(
        self,
        starts: Mapping[str, FloatArray],
        nuts: NutsSettings,
        seed: int,
        follow: Follow | None = None,
    ) -> Fit:
        """Run the form, its chains from the starting points, by parameter, shape (n, ...).

        If some chains do not get on from there, all start anew from others of the points.
        ``follow`` is told how far the run is.
        """

        def once(each: int) -> Fit:
            chosen = starts if each == seed else _in_other_order(starts, each)
            points = self.form.points
            inits = starting_values(chosen, chains=nuts.chains, num_pseudo_samples=points)
            return self._sample(nuts, each, inits, follow=follow)

        fit, failed = started_anew(once, seed)
        if failed:
            remember(fit, [chains_failed(failed)])
        return fit

    def continued(
        self, fit: Fit, nuts: NutsSettings, seed: int, follow: Follow | None = None
    ) -> Fit:
        """Go on with a run that has no pseudo-samples, from its chains' last states.

        NUTS keeps the metric of the run's draws and adapts the step size only.

        Parameters
        ----------
        fit
            The run's last round.
        nuts
            Settings of the next one.
        seed
            Its seed.
        follow
            Is told how far it is.
        """
        raw = fit.raw
        last = {
            name: raw[name].isel(draw=-1).transpose("chain", ...).to_numpy()
            for name in fit.parameters
        }
        inv_metric = self._inv_metric(fit)
        inits = starting_values(last, chains=nuts.chains)
        return self._sample(nuts, seed, inits, inv_metric=inv_metric, follow=follow)

    def _sample(
        self,
        nuts: NutsSettings,
        seed: int,
        inits: list[dict[str, Any]],
        *,
        inv_metric: FloatArray | None = None,
        follow: Follow | None = None,
    ) -> Fit:
        program = self.program
        run = Run(
            seed=seed,
            nuts=nuts,
            inits=inits,
            inv_metric=inv_metric,
            compiled=program.compiled.get(self.variant),
            engine=program.engine,
            follow=follow,
        )
        return sample(program.model, self.form, self.along, run)

    @cached_property
    def _target(self) -> BatchedDensity:
        model = self.program.model
        return BatchedDensity(model.program("target"), model.data)

    def _inv_metric(self, fit: Fit) -> FloatArray:
        """Return variances of a run's raw, unconstrained draws, shrunk as Stan does it."""
        raw = fit.raw
        flat = {
            name: raw[name].transpose("chain", "draw", ...).to_numpy() for name in fit.parameters
        }
        values = {name: each.reshape(-1, *each.shape[2:]) for name, each in flat.items()}
        points = self._target.unconstrain_draws(values)
        share = len(points) / (len(points) + _PRIOR_DRAWS)
        shrunk: FloatArray = share * points.var(axis=0) + (1 - share) * _PRIOR_VARIANCE
        return shrunk


def _in_other_order(starts: Mapping[str, FloatArray], seed: int) -> dict[str, FloatArray]:
    """Return starting points by parameter, shape (n, ...), in a random order."""
    count = min(len(each) for each in starts.values())
    order = np.random.default_rng(seed).permutation(count)
    return {name: each[order] for name, each in starts.items()}
