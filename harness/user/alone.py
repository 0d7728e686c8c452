"""Methods of :func:`harness.user.sample` that run alone, without plain NUTS before them."""

from __future__ import annotations

from harness.errors import DataError, SamplingError
from harness.samplers.nested_run import NestedSettings
from harness.samplers.nested_sampling import METHOD as NESTED
from harness.samplers.parallel_tempering import METHOD as PARALLEL
from harness.samplers.rung_replicas import Explorer
from harness.user.evidence import pilots_evidence
from harness.user.generated import ORIGINAL
from harness.user.judge import edited_density, higher_than
from harness.user.nested import nested_sampling, refuse_without_prior
from harness.user.parallel import References
from harness.user.program import Tempered
from harness.user.result import UserFit
from harness.user.scout import scout_program
from harness.user.steps import Steps

_DRAWS_A_PARTICLE, _FEWEST_PARTICLES = 4, 8
"""Of nested sampling: a particle gives about as many effective draws in ten dimensions."""


def tempered_alone(steps: Steps, method: Tempered) -> UserFit:
    """Run pilots and a tempered form, without plain NUTS first."""
    with steps.clock.step("pilots along the path", "pilot"):
        scouted = scout_program(steps.program.model, budget=steps.budget, seed=steps.seed)
    steps.search = scouted.search
    if scouted.path is None:
        raise SamplingError(
            f"{steps.program.path}: the pilots found no path to temper along: "
            f"{scouted.failures.get('search') or steps.program.model.no_gaussian_base}. Use "
            "--method nuts, or auto, which keeps the fit of plain NUTS"
        )
    fit = steps.tempered(method, scouted.path, scouted.starts)
    differ = steps.program.difference_by_editing(method, scouted.path, steps.seed, steps.num)
    found, findings = pilots_evidence(
        steps.program.model, scouted, search_is_sound=True, nuts_is_sound=False
    )
    findings += higher_than(fit, scouted, found)
    if differ is not None:
        findings.append(edited_density(differ))
    return UserFit(steps.finished(fit, findings, scouted), method)


def parallel_alone(steps: Steps, explorer: Explorer, references: References) -> UserFit:
    """Run parallel tempering between the prior, the posterior and, if wanted, a Gaussian."""
    program = steps.program
    program.compile([ORIGINAL] if program.generates else [], steps.clock)
    with steps.clock.step("comparing densities", "check"):
        steps.refuse(program.disagreement(steps.seed))
    fit, findings = steps.replicas(explorer, steps.budget, references)
    return UserFit(steps.finished(fit, findings), PARALLEL)


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
    with steps.clock.step("nested sampling", "nested"):
        fit, findings = nested_sampling(
            program.model, settings, seed=steps.seed, begin_round=steps.clock.say
        )
    with steps.clock.step("generated quantities", "generate"):
        fit = program.generated(fit, steps.seed)
    fit.tree.attrs["draws_asked"] = chosen.draws
    return UserFit(steps.finished(fit, findings), NESTED)
