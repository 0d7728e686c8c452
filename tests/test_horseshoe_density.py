"""Every horseshoe program against SciPy; its prior by quadrature; the shared form's bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import halfcauchy, invgamma, multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogG, normalised_weights
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.models.horseshoe import Classification
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM

RNG = np.random.default_rng(12)
N_OBS, D = 7, 4
DATA = Classification(RNG.normal(size=(N_OBS, D)), np.array([1, 0, 0, 1, 1, 0, 1]))
TAU_0, ICEPT, SLAB, DF = 0.6, 3.0, 2.0, 5.0  # slab_df 3 and scale 2 alone would hide a swap
MODEL = DATA.model("horseshoe", scale_global=TAU_0, scale_icept=ICEPT, slab_scale=SLAB, slab_df=DF)
ROOT = np.tril(0.1 * RNG.normal(size=(MODEL.dimension, MODEL.dimension))) + np.eye(MODEL.dimension)
BASE = gaussian_base(RNG.normal(0, 0.5, MODEL.dimension), ROOT @ ROOT.T, log_zeta=-3.1)
GAUSSIAN = multivariate_normal(BASE.mean, BASE.covariance)
SHARED = DATA.model(
    "horseshoe",
    scale_global=TAU_0,
    scale_icept=ICEPT,
    slab_scale=SLAB,
    slab_df=DF,
    form="shared_scales",
)
KNOTTED: LogG = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))


@dataclass
class Draw:
    """Pseudo-samples under their own scales or shared ones, with the Jacobian of the scales."""

    beta0: FloatArray  # (N,)
    z: FloatArray  # (N, d)
    local: FloatArray  # (N, d), or (1, d) if shared
    tau: FloatArray  # (N,) or (1,)
    c2: FloatArray  # (N,) or (1,)

    @classmethod
    def unconstrained(cls, u: FloatArray, num: int, d: int, *, shared: bool = False) -> Draw:
        """Read beta0, z, log lambda, log tau, log c2, each by pseudo-sample."""
        own = 1 if shared else num
        cuts = np.cumsum([num, num * d, own * d, own, own])
        beta0, z, local, tau, c2, _ = np.split(u, cuts)
        local, tau, c2 = np.exp(local), np.exp(tau), np.exp(c2)
        return cls(beta0, z.reshape(num, d), local.reshape(own, d), tau, c2)

    @property
    def log_jacobian(self) -> FloatArray:
        return np.asarray(np.log(self.local).sum(axis=1) + np.log(self.tau) + np.log(self.c2))

    # Written out: SciPy's own functions, which test_priors_are_scipys compares with, are slow.
    @property
    def log_coefficients_prior(self) -> FloatArray:
        square = np.square(self.beta0 / ICEPT) + np.square(self.z).sum(axis=1)
        count = 1 + self.z.shape[1]
        return np.asarray(-square / 2 - np.log(ICEPT) - count * np.log(2 * np.pi) / 2)

    @property
    def log_scales_prior(self) -> FloatArray:
        local = np.log(2 / np.pi) - np.log1p(np.square(self.local))
        tau = np.log(2 / (np.pi * TAU_0)) - np.log1p(np.square(self.tau / TAU_0))
        a, b = DF / 2, DF * SLAB**2 / 2
        c2 = a * np.log(b) - gammaln(a) - (a + 1) * np.log(self.c2) - b / self.c2
        return np.asarray(local.sum(axis=1) + tau + c2)

    def log_likelihood(self, data: Classification = DATA) -> FloatArray:
        tau, c2 = self.tau[:, None], self.c2[:, None]
        regularised = np.sqrt(c2 * self.local**2 / (c2 + tau**2 * self.local**2))
        eta = self.beta0[:, None] + (self.z * regularised * tau) @ data.x.T
        return np.asarray(-np.logaddexp(0, np.where(data.y == 1, -eta, eta)).sum(axis=1))

    def log_base(self, base: GaussianBase | None) -> FloatArray:
        """Prior, or a Gaussian on the unconstrained space as a density of the scales."""
        if base is None:
            return self.log_coefficients_prior + self.log_scales_prior
        logs = (np.log(self.local), np.log(self.tau)[:, None], np.log(self.c2)[:, None])
        u = np.column_stack([self.beta0, self.z, *logs])
        assert base is BASE
        return np.atleast_1d(GAUSSIAN.logpdf(u)) - self.log_jacobian


def check(density: StanDensity, expected: Callable[[FloatArray], float], seed: int) -> None:
    """Compare value and gradient at random points."""
    for u in np.random.default_rng(seed).normal(-0.2, 0.8, (5, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-10, abs=1e-10)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


def test_priors_are_scipys() -> None:
    draw = Draw.unconstrained(RNG.normal(size=3 * MODEL.dimension), 3, D)
    coefficients = norm.logpdf(draw.beta0, 0, ICEPT) + norm.logpdf(draw.z).sum(axis=1)
    np.testing.assert_allclose(draw.log_coefficients_prior, coefficients, rtol=1e-12)
    local, tau = halfcauchy.logpdf(draw.local), halfcauchy.logpdf(draw.tau, scale=TAU_0)
    slab = invgamma.logpdf(draw.c2, DF / 2, scale=DF * SLAB**2 / 2)
    np.testing.assert_allclose(draw.log_scales_prior, local.sum(axis=1) + tau + slab, rtol=1e-12)


def test_target() -> None:
    density = StanDensity(MODEL.program("target"), MODEL.data)
    assert density.dimension == MODEL.dimension

    def expected(u: FloatArray) -> float:
        draw = Draw.unconstrained(u, 1, D)
        return float((draw.log_base(None) + draw.log_likelihood() + draw.log_jacobian)[0])

    check(density, expected, 1)


@pytest.mark.parametrize("base", [None, BASE], ids=["prior", "gaussian"])
@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed_tempering(base: GaussianBase | None, log_g: LogG, ladder: bool) -> None:
    data = {**MODEL.data, **tempering_data(MODEL, base, -2.2, log_g), "ladder": int(ladder)}
    knot, value = np.array(log_g).T
    zeta = -2.2 if base is None else base.log_zeta
    density = StanDensity(MODEL.program("collapsed_tempering"), data)
    assert density.dimension == MODEL.dimension

    # Gauss-Legendre between knots, for the integral over beta.
    t, share = np.polynomial.legendre.leggauss(60)
    width = np.diff(knot)[:, None] / 2
    beta = knot if ladder else (knot[:-1, None] + width * (t + 1)).ravel()
    log_share = value
    if not ladder:
        log_share = np.log(width * share).ravel() + np.interp(beta, knot, value)

    def expected(u: FloatArray) -> float:
        draw = Draw.unconstrained(u, 1, D)
        zero = draw.log_base(base)[0]
        one = (draw.log_base(None) + draw.log_likelihood())[0] - zeta
        total = logsumexp(beta * one + (1 - beta) * zero + log_share)
        return float(total + draw.log_jacobian[0])

    check(density, expected, 2)


def log_density_of_inv_temp(
    beta: FloatArray, knots: LogG, shape: tuple[float, float]
) -> FloatArray:
    log_density = np.interp(beta, *np.array(knots).T)
    a, b = shape
    if shape != (1.0, 1.0):
        log_density = log_density + (a - 1) * np.log(beta) + (b - 1) * np.log1p(-beta)
    return np.asarray(log_density, dtype=np.float64)


def log_copula(beta: FloatArray, correlation: float) -> float:
    """Gaussian copula density of equicorrelated inverse temperatures."""
    num = len(beta)
    matrix = np.full((num, num), correlation) + (1 - correlation) * np.eye(num)
    normal = ndtri(beta)
    quadratic = normal @ (np.linalg.inv(matrix) - np.eye(num)) @ normal
    return float(-quadratic / 2 - np.linalg.slogdet(matrix)[1] / 2)


PLAIN: dict[str, Any] = {}
SHAPED: dict[str, Any] = {
    "log_g": ((0.1, 1.0), (0.4, -0.5), (1.0, 2.0)),
    "g_shape": (1.5, 0.7),
    "g_correlation": -0.3,
    "log_pi": ((0.1, 0.3), (1.0, -1.0)),
    "pi_shape": (0.8, 2.0),
}


def extended_reference(
    u: FloatArray,
    num: int,
    inv_temp: Any,
    base: GaussianBase | None,
    settings: Mapping[str, Any],
    *,
    shared: bool,
) -> float:
    """Equation 8 in its product form: (1/N) sum_i gamma_i pi_i prod_{j != i} q_j."""
    draw = Draw.unconstrained(u, num, D, shared=shared)
    log_g, log_pi = settings.get("log_g", UNIFORM), settings.get("log_pi", UNIFORM)
    start = log_g[0][0]
    total = float(draw.log_jacobian.sum())
    if inv_temp is None:
        beta = into_box(u[-num:], start, 1)
        total += log_box_jacobian(u[-num:], start, 1)
        correlation = settings.get("g_correlation", 0.0)
        total += log_copula((beta - start) / (1 - start), correlation)
    else:
        beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), num)
    if shared:
        total += float(draw.log_scales_prior[0])
        zero = prior = draw.log_coefficients_prior
    else:
        zero, prior = draw.log_base(base), draw.log_base(None)
    log_gamma = prior + draw.log_likelihood()
    zeta = -1.7 if base is None else base.log_zeta
    log_q = beta * (log_gamma - zeta) + (1 - beta) * zero
    log_q = log_q + log_density_of_inv_temp(beta, log_g, settings.get("g_shape", (1.0, 1.0)))
    log_target = log_gamma + log_density_of_inv_temp(
        beta, log_pi, settings.get("pi_shape", (1.0, 1.0))
    )
    terms = [log_target[i] + np.delete(log_q, i).sum() for i in range(num)]
    return float(logsumexp(terms)) - float(np.log(num)) + total


@pytest.mark.parametrize("form", ["prior", "gaussian", "shared"])
@pytest.mark.parametrize("settings", [PLAIN, SHAPED], ids=["plain", "shaped"])
@pytest.mark.parametrize(
    ("num", "inv_temp"),
    [(1, None), (1, 0.3), (2, None), (2, 0.3), (2, (0.15, 0.9)), (3, None), (3, (0.2, 0.5, 0.8))],
)
def test_pseudo_extended(form: str, settings: dict[str, Any], num: int, inv_temp: Any) -> None:
    shared, base = form == "shared", BASE if form == "gaussian" else None
    settings = dict(settings)
    if inv_temp is not None:
        settings.pop("g_correlation", None)
    model = SHARED if shared else MODEL
    own = pseudo_extended_data(model, num, inv_temp, base=base, log_zeta=-1.7, **settings)
    density = StanDensity(model.program("pseudo_extended"), {**model.data, **own})
    scales = D + 2
    dimension = num * (D + 1) + (scales if shared else num * scales)
    assert density.dimension == dimension + (num if inv_temp is None else 0)

    def expected(u: FloatArray) -> float:
        return extended_reference(u, num, inv_temp, base, settings, shared=shared)

    check(density, expected, 3)


WRITTEN = {"log_gamma", "log_base", "inv_temp", "delta", "log_weight"}


def generated(model: Model, variant: str, own: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return all variables of a short run through stanli, shape (40, ...), by name."""
    program = model.program(variant)
    plain = {name: np.asarray(value).tolist() for name, value in {**model.data, **own}.items()}
    include = [str(path) for path in program.include_paths]
    run = stanli.Model(str(program.path), data=plain, include_paths=include)
    fit = run.sample(chains=1, warmup=20, samples=40, refresh=0, seed=5)
    return {name: np.asarray(fit.draws(name), dtype=np.float64)[0] for name in fit.variables}


def draws_of(out: Mapping[str, FloatArray]) -> list[Draw]:
    """Return the pseudo-samples of each row of :func:`generated`."""
    rows = []
    for t in range(40):
        each = {name: np.atleast_1d(out[name][t]) for name in ("beta0", "tau", "c2")}
        d, local = out["z"][t].reshape(D, -1).T, out["lambda"][t].reshape(D, -1).T
        rows.append(Draw(each["beta0"], d, local, each["tau"], each["c2"]))
    return rows


@pytest.mark.parametrize("base", [None, BASE], ids=["prior", "gaussian"])
def test_tempered_generated_quantities(base: GaussianBase | None) -> None:
    """Delta and both log weights at every draw; nothing wide besides is written."""
    own = tempering_data(MODEL, base, -2.2, KNOTTED) | {"ladder": 0}
    out = generated(MODEL, "collapsed_tempering", own)
    assert set(out) == {*MODEL.parameters, *WRITTEN}
    zeta = -2.2 if base is None else base.log_zeta
    for t, draw in enumerate(draws_of(out)):
        one = draw.log_base(None) + draw.log_likelihood() - zeta
        delta = float((draw.log_base(base) - one)[0])
        assert out["delta"][t] == pytest.approx(delta, rel=1e-10, abs=1e-10)
        knot, value = np.array(KNOTTED).T
        fine, share = np.polynomial.legendre.leggauss(60)
        width = np.diff(knot)[:, None] / 2
        beta = (knot[:-1, None] + width * (fine + 1)).ravel()
        log_mass = np.log(width * share).ravel() + np.interp(beta, knot, value) - beta * delta
        ends = np.array([value[-1] - delta, value[0]]) - logsumexp(log_mass)
        np.testing.assert_allclose(out["log_weight"][t], ends, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["prior", "gaussian", "shared"])
def test_pseudo_extended_generated_quantities(form: str) -> None:
    model, base = SHARED if form == "shared" else MODEL, BASE if form == "gaussian" else None
    own = pseudo_extended_data(model, 3, None, base=base, log_zeta=-1.7, **SHAPED)
    out = generated(model, "pseudo_extended", own)
    assert set(out) == {*MODEL.parameters, *WRITTEN, "free_inv_temp"}
    zeta = -1.7 if base is None else base.log_zeta
    for t, draw in enumerate(draws_of(out)):
        beta = out["inv_temp"][t]
        if form == "shared":
            zero = draw.log_coefficients_prior
            log_gamma = zero + draw.log_likelihood()
        else:
            zero = draw.log_base(base)
            log_gamma = draw.log_base(None) + draw.log_likelihood()
        delta = zero + zeta - log_gamma
        np.testing.assert_allclose(out["delta"][t], delta, rtol=1e-10, atol=1e-10)
        log_pi = log_density_of_inv_temp(beta, SHAPED["log_pi"], SHAPED["pi_shape"])
        log_g = log_density_of_inv_temp(beta, SHAPED["log_g"], SHAPED["g_shape"])
        log_q = beta * (log_gamma - zeta) + (1 - beta) * zero + log_g
        log_weight = log_gamma + log_pi - log_q
        # Up to a constant of the draw: only normalised weights are ever used.
        np.testing.assert_allclose(
            normalised_weights(out["log_weight"][t]), normalised_weights(log_weight), rtol=1e-8
        )


@pytest.mark.parametrize("inv_temp", [0.0, 0.37, 1.0, None])
@pytest.mark.parametrize("model", [MODEL, SHARED], ids=["full", "shared"])
def test_one_pseudo_sample_is_the_target(model: Model, inv_temp: float | None) -> None:
    target = StanDensity(MODEL.program("target"), MODEL.data)
    data = {**model.data, **pseudo_extended_data(model, 1, inv_temp)}
    extended = StanDensity(model.program("pseudo_extended"), data)
    for u in np.random.default_rng(4).normal(size=(10, extended.dimension)):
        value, slope = extended(u)
        expected, expected_slope = target(u[: MODEL.dimension])
        expected += log_box_jacobian(u[MODEL.dimension :], 0, 1)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope[: MODEL.dimension], expected_slope, rtol=1e-9, atol=1e-9)


# Quadrature with one predictor.  A scale is s t / (1 - t), under which the half-Cauchy density
# is smooth on [0, 1].
ONE = Classification(
    np.array([[1.5], [0.8], [2.0], [-1.1], [-0.4], [-1.7]]), np.array([1] * 3 + [0] * 3)
)


def scale_rule(count: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for integrals over (0, infinity)."""
    t, share = np.polynomial.legendre.leggauss(count)
    t, share = (t + 1) / 2, share / 2
    return scale * t / (1 - t), scale * share / (1 - t) ** 2


def normal_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for integrals over the real line of what a Gaussian bounds."""
    node, share = np.polynomial.hermite_e.hermegauss(count)
    return node, share * np.exp(node**2 / 2)


def test_the_prior_integrates_to_one() -> None:
    """All five dimensions, through the program, on a ladder whose mass is at 0."""
    icept = 1.3
    model = ONE.model("one", scale_global=TAU_0, scale_icept=icept, slab_scale=SLAB, slab_df=DF)
    data = {**model.data, **tempering_data(model, log_g=((0.0, 0.0), (1.0, -1e4))), "ladder": 1}
    density = StanDensity(model.program("collapsed_tempering"), data)
    gauss, gauss_share = normal_rule(2)
    local, local_share = scale_rule(14, 1)
    tau, tau_share = scale_rule(14, TAU_0)
    c2, c2_share = scale_rule(40, SLAB**2)
    total = 0.0
    for b, b_share in zip(icept * gauss, icept * gauss_share, strict=True):
        for z, z_share in zip(gauss, gauss_share, strict=True):
            for s, s_share in zip(local, local_share, strict=True):
                for r, r_share in zip(tau, tau_share, strict=True):
                    u = np.array([b, z, np.log(s), np.log(r), 0.0])
                    inner = 0.0
                    for c, c_share in zip(c2, c2_share, strict=True):
                        u[4] = np.log(c)
                        # Without the Jacobian: a density of the scales themselves.
                        inner += c_share * np.exp(density.value(u) - u[2:].sum())
                    total += b_share * z_share * s_share * r_share * inner
    assert total == pytest.approx(1, rel=1e-6)


def tau_marginals(inv_temp: Any) -> dict[str, FloatArray]:
    """Masses of tau given beta0 = 0, lambda = 1 and c^2 = 4, for one predictor and N = 2.

    Every integral over z, tau and the inverse temperatures is the same sum over nodes in the
    reference and in the extended densities, which factorises in both: they agree to rounding.

    Returns
    -------
    dict
        Normalised masses at nodes of tau: ``target``; ``shared`` and ``full``, of weighted draws
        from the densities that Stan evaluates; ``claimed``, what the shared program's comment
        says they are.  And ``bounded``, tau / (tau_0 + tau) at the nodes.
    """
    (z, z_share), (tau, tau_share) = normal_rule(10), scale_rule(10, TAU_0)
    row, column = np.repeat(tau, len(z)), np.tile(z, len(tau))[:, None]
    flat = np.ones(row.size)
    nodes = Draw(0 * flat, column, flat[:, None], row, 4 * flat)
    log_l = nodes.log_likelihood(ONE).reshape(len(tau), len(z))
    pairs: list[tuple[tuple[Any, ...], float]] = [((inv_temp, inv_temp), 1.0)]
    if isinstance(inv_temp, tuple):
        pairs = [(inv_temp, 1.0)]
    elif inv_temp is None:
        t, t_share = np.polynomial.legendre.leggauss(5)
        t, t_share = (t + 1) / 2, t_share / 2
        pairs = [
            ((t[a], t[b]), float(t_share[a] * t_share[b])) for a, b in np.ndindex(len(t), len(t))
        ]

    prior = tau_share * halfcauchy.pdf(tau, scale=TAU_0)
    phi = z_share * norm.pdf(z)
    normaliser = sum(
        share * (np.exp(beta[0] * log_l) + np.exp(beta[1] * log_l)) / 2 for beta, share in pairs
    )
    target = prior * (np.exp(log_l) @ phi)
    masses = {"target": target, "claimed": target * (normaliser @ phi)}
    masses |= {"shared": np.zeros(len(tau)), "full": np.zeros(len(tau))}

    scales: dict[str, Any] = {
        "scale_global": TAU_0,
        "scale_icept": ICEPT,
        "slab_scale": SLAB,
        "slab_df": DF,
    }
    density = {}
    for form, model in (
        ("shared", ONE.model("one", form="shared_scales", **scales)),
        ("full", ONE.model("one", **scales)),
    ):
        own = pseudo_extended_data(model, 2, inv_temp)
        density[form] = StanDensity(model.program("pseudo_extended"), {**model.data, **own})
    log_tau, slab = np.log(tau), np.log(4.0)
    for beta, share in pairs:
        # Inverse temperatures on the logit scale, and the Jacobian that takes them off it.
        free = [np.log(b / (1 - b)) for b in beta] if inv_temp is None else []
        jacobian = sum(np.log(b * (1 - b)) for b in beta) if free else 0.0
        for i, j, k in np.ndindex(len(z), len(z), len(tau)):
            pair_share = share * z_share[i] * z_share[j]
            u = [0, 0, z[i], z[j], 0, log_tau[k], slab, *free]
            value = density["shared"].value(u) - jacobian - log_tau[k]
            masses["shared"][k] += pair_share * tau_share[k] * np.exp(value)
            for m in range(len(tau)) if inv_temp is not None else ():
                u = [0, 0, z[i], z[j], 0, 0, log_tau[k], log_tau[m], slab, slab]
                value = density["full"].value(u) - log_tau[k] - log_tau[m]
                mass = pair_share * tau_share[k] * tau_share[m] * np.exp(value)
                one, two = (1 - beta[0]) * log_l[k, i], (1 - beta[1]) * log_l[m, j]
                weight = normalised_weights([one, two])
                masses["full"][[k]] += weight[0] * mass
                masses["full"][[m]] += weight[1] * mass
    normalised = {name: mass / mass.sum() for name, mass in masses.items() if mass.any()}
    return normalised | {"bounded": tau / (TAU_0 + tau)}


@pytest.mark.parametrize(
    ("inv_temp", "bias"),
    [(0.0, 0.0), (0.5, 0.049), (1.0, 0.108), ((0.2, 0.9), 0.022), (None, 0.024)],
)
def test_shared_scales_are_not_exact(inv_temp: Any, bias: float) -> None:
    """Weighted draws of the published form have the scales its program says, not the target's."""
    mass = tau_marginals(inv_temp)
    np.testing.assert_allclose(mass["shared"], mass["claimed"], rtol=1e-9)
    mean = {name: float(mass["bounded"] @ mass[name]) for name in ("target", "shared")}
    # For scale: tau / (tau_0 + tau) lies between 0 and 1, and its mean under the target is 0.69.
    assert mean["target"] == pytest.approx(0.692, abs=0.002)
    assert mean["shared"] - mean["target"] == pytest.approx(bias, abs=0.002)
    if inv_temp is not None:
        np.testing.assert_allclose(mass["full"], mass["target"], rtol=1e-9)


def test_shared_scales_refuse_a_gaussian_base() -> None:
    base = gaussian_base(np.zeros(MODEL.dimension), np.eye(MODEL.dimension))
    with pytest.raises(DataError, match="share lambda, tau, c2, so they take no Gaussian base"):
        pseudo_extended_data(SHARED, 2, base=base)
    with pytest.raises(DataError, match="no variant 'collapsed_pseudo_extended'"):
        SHARED.program("collapsed_pseudo_extended")
