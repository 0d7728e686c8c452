"""Methods of :func:`harness.user.sample` that run alone, without plain NUTS before them."""

from __future__ import annotations

from harness.errors import FAILURES, DataError, SamplingError
from harness.samplers.nested_run import NestedSettings
from harness.samplers.nested_sampling import METHOD as NESTED
from harness.samplers.parallel_tempering import METHOD as PARALLEL
from harness.samplers.rung_replicas import Explorer
from harness.user.compare import parameters_of
from harness.user.evidence import pilots_evidence
from harness.user.generated import ORIGINAL
from harness.user.judge import anew_in_vain, began_anew, edited_density, higher_than
from harness.user.mode_findings import problems_of_modes
from harness.user.mode_tables import MODES_SHARE
from harness.user.near import in_other_modes
from harness.user.nested import refuse_without_prior
from harness.user.parallel import References
from harness.user.result import UserFit
from harness.user.rounds import severities
from harness.user.scout import scout_program
from harness.user.steps import LEAST_SHARE, Steps
from harness.user.tempered_form import Tempered, TemperedForm
from harness.user.tempered_run import tempered_run

_DRAWS_A_PARTICLE, _FEWEST_PARTICLES = 4, 8
"""Of nested sampling: a particle gives about as many effective draws in ten dimensions."""


def tempered_alone(steps: Steps, method: Tempered) -> UserFit:
    """Run pilots and a tempered form, without plain NUTS first."""
    with steps.clock.step("pilots along the path", "pilot"):
        scouted = scout_program(steps.program.model, budget=steps.budget, seed=steps.seed)
    steps.modes.search = scouted.search
    if scouted.path is None:
        raise SamplingError(
            f"{steps.program.path}: the pilots found no path to temper along: "
            f"{scouted.failures.get('search') or steps.program.model.no_gaussian_base}. Use "
            "--method parallel_tempering, which needs no such path, or auto, which begins with NUTS"
        )
    fit = tempered_run(steps, method, scouted, scouted.path, scouted.starts, alone=True)
    form = TemperedForm(steps.program, method, scouted.path, steps.num)
    differ = form.difference_by_editing(steps.seed)
    found, findings = pilots_evidence(
        steps.program.model, scouted, search_is_sound=True, nuts_is_sound=False
    )
    findings += higher_than(fit, scouted, found)
    if differ is not None:
        findings.append(edited_density(differ))
    return UserFit(steps.finished(fit, findings, scouted), method)


def parallel_alone(steps: Steps, explorer: Explorer, references: References) -> UserFit:
    """Run parallel tempering between the prior, the posterior and, if wanted, Gaussians near it.

    If climbs show a mode that it has missed, it begins anew with Gaussians there, if there is time.
    """
    program = steps.program
    program.compile([ORIGINAL] if program.generates else [], steps.clock)
    with steps.clock.step("comparing densities", "check"):
        steps.refuse(program.disagreement(steps.seed))
    fit = steps.replicas(explorer, steps.budget, references)
    result = steps.modes.added_to(UserFit(steps.finished(fit, []), PARALLEL))
    left = (1 - MODES_SHARE) * steps.budget - steps.spent
    lacks = problems_of_modes(result.modes)
    if references == 1 or not lacks or left < LEAST_SHARE * steps.budget:
        return result
    found = steps.modes.only_climbs_found()
    try:
        near = in_other_modes(program.model, parameters_of(fit), found, seed=steps.seed)
        if near is None:
            return result
        again = steps.replicas(explorer, left, references, near=near)
    except FAILURES as error:  # the first run is finished, and is not lost
        return result.adding(anew_in_vain(str(error)))
    again.count_as_warmup(fit)
    other = steps.modes.added_to(UserFit(steps.finished(again, [began_anew()]), PARALLEL))
    troubles = other.troubles()
    if severities(troubles) > severities(result.troubles()):
        return result.adding(anew_in_vain(troubles[0].sentence))
    return other


def nested_alone(steps: Steps, explorer: Explorer) -> UserFit:
    """Run nested sampling from the prior."""
    if explorer == "both":
        raise DataError("nested_sampling moves particles by --explorer slice or hmc; got both")
    program, chosen = steps.program, steps.nuts
    refuse_without_prior(program.model)
    settings = NestedSettings(
        particles=max(chosen.draws // _DRAWS_A_PARTICLE, _FEWEST_PARTICLES),
        populations=chosen.chains,
        explorer="slice" if explorer == "auto" else explorer,
        most_seconds=steps.budget,
    )
    try:
        settings.refuse_too_few(program.model.dimension)
    except DataError as error:
        raise DataError(
            f"{error}: --draws is {_DRAWS_A_PARTICLE} times the number of particles"
        ) from error
    program.compile([ORIGINAL] if program.generates else [], steps.clock)
    with steps.clock.step("comparing densities", "check"):
        steps.refuse(program.disagreement(steps.seed))
    fit = steps.nested(settings)
    fit.tree.attrs["draws_asked"] = chosen.draws
    return UserFit(steps.finished(fit, []), NESTED)
