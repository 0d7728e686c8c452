"""Independent Bernoulli variables with one unknown parameter (Murray 2007, section 5.7.2).

Half of D observed bits are 1.  With a uniform prior the posterior is Beta(D/2 + 1, D/2 + 1).  A
Gibbs sweep draws all bits afresh, so that latent histories are one step long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.evidence.autocorrelation import autocorrelation_times
from harness.fit import Fit
from harness.folders import shipped
from harness.forms.method import python_method
from harness.intractable import IntractableProblem, Walk, latent_history, metropolis
from harness.intractable.latent_history import Mask, Rule, States
from harness.model import Model

from .gaussian import few_chains

METHOD = "unknown_share"
EXACT_RULE = "exact"


def model(variables: int) -> Model:
    """Return D bits, of which half are 1."""
    folder = shipped("experiments") / "intractable"
    y = (np.arange(variables) % 2).astype(np.float64)
    return Model(f"bernoulli-{variables}", folder, {"y": y}, ("theta",), 1)


@dataclass(frozen=True)
class FreshBits:
    """A sweep that sets bit d to 1 if the number u_d is below theta.

    A summary is the bits, or -1 if they are unknown.
    """

    variables: int

    def back(
        self, states: States, points: FloatArray, rng: np.random.Generator
    ) -> tuple[States, States]:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        v = rng.random(states.shape)
        numbers = np.where(states > 0, points * v, points + (1 - points) * v)
        return (rng.random(states.shape) < points).astype(np.int8), numbers

    def unknown(self, count: int) -> States:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        return np.full((count, self.variables), -1, dtype=np.int8)

    def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        moved: States = (numbers < points).astype(np.int8)
        return moved

    def state(self, summary: States) -> tuple[States, Mask]:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        known: Mask = np.all(summary >= 0, axis=1)
        return summary, known

    def possible(self, summary: States, states: States) -> Mask:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        found: Mask = ((summary < 0) | (summary == states)).all(axis=1)
        return found

    def log_transition(self, before: States, after: States, points: FloatArray) -> FloatArray:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        theta, ones = points[:, 0], after.sum(axis=1)
        value: FloatArray = ones * np.log(theta) + (self.variables - ones) * np.log1p(-theta)
        return value


def problem(y: FloatArray) -> IntractableProblem:
    """Return the likelihood with a uniform prior; its constant is 1."""
    bits = FreshBits(len(y))
    return IntractableProblem(
        "bernoulli",
        y,
        1,
        log_prior=lambda t: np.where((t[:, 0] > 0) & (t[:, 0] < 1), 0.0, -np.inf),
        log_factor=lambda t, data: bits.log_transition(data, data, t),
        simulate=lambda t, rng: (rng.random((len(t), len(y))) < t).astype(np.float64),
        data={"y": y},
    )


def width(variables: int, rule: str) -> float:
    """Return the width of the walk: of the order of a step that the rule accepts.

    Rule a confines theta to an interval of some 2 / D; the posterior has the standard deviation
    1 / (2 sqrt(D)), of which 2.4 are best for Metropolis in one dimension.
    """
    return 2 / variables if rule == "a" else 1.2 / np.sqrt(variables)


def sample_bits(
    model: Model, *, rule: str, variables: int, chains: int, iterations: int, seed: int
) -> Fit:
    """Sample theta from a start in equilibrium.

    Parameters
    ----------
    rule
        Rule ``a`` or ``b`` of latent histories, or ``exact`` for Metropolis-Hastings.
    variables
        Number of bits, D.
    chains, iterations
        Number of chains and their iterations.

    Returns
    -------
    Fit
        Attributes ``acceptance`` and ``mean`` with their errors from the differences between
        chains; ``tau``, the autocorrelation time in iterations, with its error; and ``closed``,
        whether the run is long enough for it.
    """
    target = problem(np.asarray(model.data["y"]))
    half = variables / 2 + 1
    starts = np.random.default_rng([seed, 1]).beta(half, half, size=(chains, 1))
    common: dict[str, Any] = {
        "proposal": Walk(width(variables, rule)), "draws": iterations, "chains": chains,
        "seed": seed, "warmup": 0, "adapt": False,
    }  # fmt: skip
    if rule == EXACT_RULE:
        fit = metropolis(target, starts, log_constant=lambda t: np.zeros(len(t)), **common)
    else:
        version: Rule = "a" if rule == "a" else "b"
        fit = latent_history(target, FreshBits(variables), starts, rule=version, **common)
    draws = fit.posterior["theta"].transpose("chain", "draw", ...).to_numpy()[..., 0]
    tau = autocorrelation_times(draws).own
    rates = fit.sample_stats["acceptance_rate"].transpose("chain", "draw").to_numpy()
    found = {"tau": float(tau.value), "tau_error": float(tau.error), "closed": float(tau.closed)}
    for name, values in (("acceptance", rates), ("mean", draws)):
        each = values.mean(axis=1)
        found |= {name: float(each.mean())}
        found |= {f"{name}_error": float(each.std(ddof=1) / np.sqrt(chains))}
    return few_chains(fit, found)


BITS = python_method(METHOD, sample_bits)
