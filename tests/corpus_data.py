"""Small data for the programs of ``tests/corpus``, drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, Any]
Builder = Callable[[np.random.Generator], Data]

_BUILDERS: dict[str, Builder] = {}


def corpus_data(name: str) -> Data:
    """Return the data of a program, the same at every call."""
    seed = [ord(letter) for letter in name]
    return _BUILDERS[name](np.random.default_rng(seed))


def names() -> list[str]:
    """Names of all programs that have data here."""
    return sorted(_BUILDERS)


def _data(*names: str) -> Callable[[Builder], Builder]:
    def register(builder: Builder) -> Builder:
        _BUILDERS.update(dict.fromkeys(names, builder))
        return builder

    return register


def _plain(*names: str, **values: Any) -> None:
    _BUILDERS.update(dict.fromkeys(names, lambda _: dict(values)))


_plain(
    "eight_schools_centred",
    "eight_schools_noncentred",
    J=8,
    y=[28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    sigma=[15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
)
_plain("no_data")
_plain("no_prior_statement", N=10, y=[0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
_plain("dirichlet_multinomial", K=4, counts=[3, 0, 5, 2], alpha=[1.0, 2.0, 1.5, 1.5])
_plain("hierarchical_binomial", J=5, n=[45, 48, 20, 12, 30], y=[18, 8, 4, 2, 11])
_plain("change_point", r_e=0.5, r_l=1.0, T=9, D=[4, 5, 4, 1, 0, 4, 3, 0, 1])
_plain("zero_inflated_poisson", "hurdle_truncated_poisson", N=9, y=[0, 3, 0, 1, 0, 5, 2, 0, 4])
_plain("user_lpmf", N=9, y=[0, 3, 0, 1, 0, 5, 2, 0, 4])
_plain("sir_difference", n_days=10, N=763, cases=[3, 8, 26, 76, 225, 298, 258, 233, 189, 128])
_plain(
    "seeds_binomial",
    I=6,
    n=[10, 23, 5, 17, 3, 8],
    N=[39, 62, 10, 51, 12, 30],
    x1=[0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
    x2=[0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
)


@_data("kidiq_interaction")
def _kidiq(rng: np.random.Generator) -> Data:
    iq = rng.normal(100, 15, 12).clip(70, 140)
    return {
        "N": 12,
        "kid_score": (25 + 0.6 * iq + rng.normal(0, 15, 12)).clip(10, 150),
        "mom_iq": iq,
        "mom_hs": rng.integers(0, 2, 12).astype(float),
    }


@_data("log_earnings")
def _earnings(rng: np.random.Generator) -> Data:
    return {
        "N": 10,
        "earn": np.exp(rng.normal(9, 1, 10)),
        "height": rng.normal(66, 4, 10),
        "male": rng.integers(0, 2, 10).astype(float),
    }


@_data("radon_partial_pooling")
def _radon(rng: np.random.Generator) -> Data:
    return {
        "n_obs": 12,
        "n_county": 4,
        "county": [1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 1, 3],
        "floor_measure": rng.integers(0, 2, 12).astype(float),
        "log_radon": rng.normal(1.2, 0.8, 12),
    }


@_data("radon_varying_slope")
def _radon_slope(rng: np.random.Generator) -> Data:
    return {
        "N": 10,
        "J": 3,
        "county": [1, 2, 3, 1, 2, 3, 1, 2, 3, 3],
        "x": rng.integers(0, 2, 10).astype(float),
        "y": rng.normal(1, 1, 10),
    }


@_data("mesquite")
def _mesquite(rng: np.random.Generator) -> Data:
    sizes = ("weight", "diam1", "diam2", "canopy_height", "total_height", "density")
    data: Data = {name: rng.lognormal(0.5, 0.5, 9) for name in sizes}
    return data | {"N": 9, "group": rng.integers(0, 2, 9).astype(float)}


@_data("garch11")
def _garch(rng: np.random.Generator) -> Data:
    return {"T": 12, "y": rng.normal(0.3, 1.5, 12), "sigma1": 0.5}


@_data("arma11")
def _arma(rng: np.random.Generator) -> Data:
    return {"T": 12, "y": 0.3 * np.cumsum(rng.normal(0, 1, 12))}


@_data("autoregressive")
def _autoregressive(rng: np.random.Generator) -> Data:
    return {"K": 2, "T": 10, "y": rng.normal(0, 1, 10)}


@_data("hmm_forward", "mixture_k_local")
def _states(rng: np.random.Generator) -> Data:
    y = np.concatenate([rng.normal(-2, 1, 5), rng.normal(2, 1, 5)])
    return {"K": 3, "T": 10, "N": 10, "y": y}


@_data("hmm_built_in")
def _hmm(rng: np.random.Generator) -> Data:
    return {"K": 2, "T": 8, "y": rng.poisson([1, 1, 6, 5, 6, 1, 2, 6])}


@_data("gp_regression")
def _gp(rng: np.random.Generator) -> Data:
    x = np.linspace(-2, 2, 6)
    return {"N": 6, "x": x, "y": np.sin(x) + rng.normal(0, 0.2, 6)}


@_data("gp_poisson_latent")
def _gp_poisson(rng: np.random.Generator) -> Data:
    return {"N": 5, "x": np.linspace(-2, 2, 5), "k": rng.poisson(3, 5)}


@_data("logistic_wells")
def _wells(rng: np.random.Generator) -> Data:
    return {
        "N": 12,
        "switched": rng.integers(0, 2, 12),
        "dist": rng.uniform(1, 100, 12),
        "arsenic": rng.lognormal(0, 0.5, 12),
    }


@_data("probit")
def _probit(rng: np.random.Generator) -> Data:
    return {"N": 9, "D": 2, "y": rng.integers(0, 2, 9), "x": rng.normal(size=(9, 2))}


@_data("poisson_offset")
def _poisson(rng: np.random.Generator) -> Data:
    return {
        "N": 8,
        "K": 2,
        "y": rng.poisson(3, 8),
        "X": rng.normal(size=(8, 2)),
        "exposure": rng.uniform(0.5, 2, 8),
    }


@_data("negative_binomial_roaches")
def _roaches(rng: np.random.Generator) -> Data:
    return {
        "N": 9,
        "exposure2": rng.uniform(0.5, 1.5, 9),
        "roach1": rng.exponential(2, 9),
        "treatment": rng.integers(0, 2, 9).astype(float),
        "y": rng.poisson(5, 9),
    }


@_data("irt_1pl")
def _irt(rng: np.random.Generator) -> Data:
    return {
        "J": 3,
        "K": 4,
        "N": 12,
        "jj": np.repeat([1, 2, 3], 4),
        "kk": np.tile([1, 2, 3, 4], 3),
        "y": rng.integers(0, 2, 12),
    }


@_data("irt_2pl")
def _irt_2pl(rng: np.random.Generator) -> Data:
    return {"I": 3, "J": 4, "y": rng.integers(0, 2, (3, 4))}


@_data("ordered_logit")
def _ordered(rng: np.random.Generator) -> Data:
    y = [1, 2, 3, 4, 2, 3, 1, 4, 2]
    return {"K": 4, "N": 9, "D": 2, "y": y, "x": rng.normal(size=(9, 2))}


@_data("ordered_probit_manual")
def _ordered_probit(rng: np.random.Generator) -> Data:
    return {"K": 3, "N": 8, "y": [1, 2, 3, 3, 2, 1, 2, 3], "x": rng.normal(size=8)}


@_data("mixture_normal")
def _mixture(rng: np.random.Generator) -> Data:
    return {"N": 10, "y": np.concatenate([rng.normal(-2, 1, 5), rng.normal(2, 1, 5)])}


@_data("survival_weibull")
def _survival(rng: np.random.Generator) -> Data:
    return {
        "N_obs": 6,
        "N_cens": 4,
        "M": 2,
        "t_obs": rng.weibull(1.5, 6) * 3,
        "t_cens": rng.uniform(1, 4, 4),
        "X_obs": rng.normal(size=(6, 2)),
        "X_cens": rng.normal(size=(4, 2)),
    }


@_data("censored_normal", "censored_as_parameters")
def _censored(rng: np.random.Generator) -> Data:
    return {"N_obs": 8, "N_cens": 3, "y_obs": rng.normal(1, 1, 8).clip(-3, 1.9), "U": 2.0}


@_data("truncated_data", "truncated_both_ends")
def _truncated(rng: np.random.Generator) -> Data:
    return {"N": 8, "y": rng.normal(0, 1, 8).clip(-1.9, 1.9), "L": -2.0, "U": 2.0}


@_data("lotka_volterra_ode")
def _lotka(rng: np.random.Generator) -> Data:
    return {
        "N": 4,
        "ts": [0.05, 0.1, 0.15, 0.2],
        "y_init": [30.0, 4.0],
        "y": rng.lognormal(2.5, 0.5, (4, 2)),
    }


@_data("occupancy")
def _occupancy(rng: np.random.Generator) -> Data:
    y = rng.integers(0, 2, (6, 3))
    y[[1, 4]] = 0
    return {"n_site": 6, "n_visit": 3, "y": y, "elevation": rng.normal(size=6)}


@_data("cormack_jolly_seber")
def _capture(rng: np.random.Generator) -> Data:
    y = rng.integers(0, 2, (8, 4))
    y[3] = 0
    return {"T": 4, "I": 8, "y": y}


@_data("lda_small")
def _lda(rng: np.random.Generator) -> Data:
    return {
        "K": 2,
        "V": 4,
        "M": 3,
        "N": 12,
        "w": rng.integers(1, 5, 12),
        "doc": np.repeat([1, 2, 3], 4),
        "alpha": [0.8, 0.8],
        "beta": np.full(4, 0.5),
    }


@_data("mvn_lkj_cholesky", "mvn_corr_matrix", "wishart_covariance")
def _multivariate(rng: np.random.Generator) -> Data:
    return {"N": 6, "D": 3, "y": rng.normal(size=(6, 3))}


@_data("cholesky_covariance_factor")
def _factor(rng: np.random.Generator) -> Data:
    return {"N": 6, "P": 4, "F": 2, "y": rng.normal(size=(6, 4))}


@_data("sum_to_zero_effects")
def _effects(rng: np.random.Generator) -> Data:
    return {
        "N": 12,
        "G": 4,
        "R": 3,
        "g": np.repeat([1, 2, 3, 4], 3),
        "r": np.tile([1, 2, 3], 4),
        "y": rng.normal(1, 1, 12),
    }


@_data("unit_vector_direction")
def _direction(rng: np.random.Generator) -> Data:
    d = rng.normal([1, 0, 0.5], 0.5, (6, 3))
    return {"N": 6, "d": d / np.linalg.norm(d, axis=1, keepdims=True)}


@_data("von_mises_regression")
def _angles(rng: np.random.Generator) -> Data:
    return {"N": 6, "angle": rng.uniform(-3, 3, 6), "x": rng.normal(size=6)}


@_data("measurement_error")
def _measurement(rng: np.random.Generator) -> Data:
    return {"N": 6, "x_meas": rng.normal(0, 1, 6), "tau": 0.4, "y": rng.normal(0, 1, 6)}


@_data("missing_data")
def _missing(rng: np.random.Generator) -> Data:
    return {"N_obs": 6, "N_mis": 3, "y_obs": rng.normal(1, 1, 6)}


@_data("rats")
def _rats(rng: np.random.Generator) -> Data:
    x = np.array([8.0, 15.0, 22.0])
    return {"N": 4, "T": 3, "x": x, "xbar": 15.0, "y": 6 * x + rng.normal(100, 10, (4, 3))}


@_data("state_space_local_level")
def _level(rng: np.random.Generator) -> Data:
    return {"n": 8, "y": np.cumsum(rng.normal(0, 0.5, 8))}


@_data("state_space_centred", "stochastic_volatility")
def _series(rng: np.random.Generator) -> Data:
    return {"T": 8, "y": rng.normal(0, 1, 8)}


@_data("nested_blocks", "robust_t", "user_lp_likelihood")
def _line(rng: np.random.Generator) -> Data:
    x = rng.normal(size=8)
    return {"N": 8, "robust": 1, "x": x, "y": 0.5 + 2 * x + rng.standard_t(4, 8)}


@_data("loops_and_conditionals")
def _loops(rng: np.random.Generator) -> Data:
    return {"N": 8, "kind": [1, 2, 3, 3, 1, 2, 2, 3], "y": rng.normal(0, 1, 8)}


@_data("target_increments", "jacobian_adjustment", "with_includes", "user_lpdf", "dependent_bounds")
def _vector(rng: np.random.Generator) -> Data:
    return {"N": 6, "y": rng.normal(0.5, 1, 6), "lo": -1.0, "hi": [1.0, 2.0]}


@_data("tuple_parameters")
def _tuples(rng: np.random.Generator) -> Data:
    return {"N": 5, "obs": (rng.normal(0, 1, 5), rng.poisson(2, 5))}


@_data("complex_signal")
def _signal(rng: np.random.Generator) -> Data:
    return {"N": 5, "z": rng.normal(1, 1, 5) + 1j * rng.normal(-1, 1, 5)}


@_data("arrays_of_everything")
def _arrays(rng: np.random.Generator) -> Data:
    return {
        "A": 2,
        "B": 3,
        "y": rng.normal(size=(2, 3, 2)),
        "w": rng.gamma(2, 1, (2, 2, 3)),
    }


@_data("offset_multiplier")
def _offset(rng: np.random.Generator) -> Data:
    return {"J": 3, "N": 9, "g": np.tile([1, 2, 3], 3), "y": rng.normal(3, 1, 9)}


@_data("name_clashes")
def _clashes(rng: np.random.Generator) -> Data:
    return {
        "B": 5,
        "G": 2,
        "log_zeta": rng.normal(size=5),
        "base_mean": rng.normal(size=5),
        "ladder": 1,
    }


@_data("prior_with_data_scales")
def _scales(rng: np.random.Generator) -> Data:
    return {
        "N": 8,
        "K": 3,
        "X": rng.normal(size=(8, 3)),
        "y": rng.normal(size=8),
        "prior_mean": rng.normal(size=3),
        "prior_scale": rng.uniform(0.5, 2, 3),
        "prior_rate": 0.7,
    }


@_data("markov_rows")
def _markov(rng: np.random.Generator) -> Data:
    return {"K": 4, "moves": rng.integers(0, 9, (4, 4)), "seen": rng.integers(0, 5, (4, 3))}


@_data("all_operators")
def _operators(rng: np.random.Generator) -> Data:
    return {
        "N": 9,
        "X": rng.normal(size=(9, 3)),
        "y": rng.normal(size=9),
        "k": rng.poisson(2, 9),
    }


@_data("mixed_observed_and_missing")
def _mixed(rng: np.random.Generator) -> Data:
    y = rng.normal(size=6)
    return {"N_obs": 6, "N_mis": 2, "ii_obs": [1, 2, 4, 5, 6, 8], "ii_mis": [3, 7], "y_obs": y}


@_data("overrides", "accumulated_likelihood", "accumulated_prior")
@_data("prior_and_likelihood_in_one", "lp_with_prior_and_likelihood")
def _few(rng: np.random.Generator) -> Data:
    return {"N": 6, "y": rng.normal(1, 1, 6), "centre": [0.3, -0.2], "scale": [1.0, 2.0]}


@_data("latent_discrete_marginal")
def _coders(rng: np.random.Generator) -> Data:
    return {"J": 6, "K": 4, "rating": rng.integers(1, 5, (6, 3))}


@_data("reduce_sum_poisson")
def _counts(rng: np.random.Generator) -> Data:
    return {"N": 9, "y": rng.poisson(3, 9), "x": rng.normal(size=9)}


@_data("horseshoe_regression")
def _horseshoe(rng: np.random.Generator) -> Data:
    return {
        "N": 8,
        "D": 4,
        "X": rng.normal(size=(8, 4)),
        "y": rng.normal(size=8),
        "scale_global": 0.3,
    }


_plain("conjugate_beta_binomial", n=20, y=14, a=2.0, b=3.5)
_plain("conjugate_gamma_poisson", N=6, k=[3, 5, 1, 4, 2, 6], shape=2.5, rate=0.8)


@_data("conjugate_normal")
def _conjugate_normal(rng: np.random.Generator) -> Data:
    y = rng.normal(1.5, 1.2, 8)
    return {"N": 8, "y": y, "sigma": 1.2, "prior_mean": -0.5, "prior_sd": 2.0}


@_data("conjugate_regression")
def _conjugate_regression(rng: np.random.Generator) -> Data:
    X = np.column_stack([np.ones(10), rng.normal(size=10)])
    y = X @ [1.0, -2.0] + rng.normal(0, 0.8, 10)
    V0 = [[2.0, 0.3], [0.3, 1.5]]
    return {"N": 10, "K": 2, "X": X, "y": y, "m0": [0.5, 0.0], "V0": V0, "a0": 3.0, "b0": 2.0}


@_data("bimodal_mixture")
def _bimodal_mixture(rng: np.random.Generator) -> Data:
    y = np.concatenate([rng.normal(-2, 1, 9), rng.normal(2.5, 1, 11)])
    return {"N": 20, "y": y, "share": 0.45}


_plain("bimodal_variance", J=8, y=[1.9, -0.8, 2.4, 0.3, -1.6, 1.1, -2.2, 0.7])


@_data("periodic_signal")
def _periodic(rng: np.random.Generator) -> Data:
    t = np.arange(12) + rng.uniform(-0.1, 0.1, 12)
    y = 0.7 * np.cos(2 * np.pi * 0.31 * t) + 0.4 * np.sin(2 * np.pi * 0.31 * t)
    return {"N": 12, "t": t, "y": y + rng.normal(0, 0.5, 12), "sigma": 0.5}


@_data("radon_homes")
def _radon_homes(rng: np.random.Generator) -> Data:
    return {
        "H": 12,
        "J": 4,
        "county": [1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 1, 3],
        "first_floor": rng.integers(0, 2, 12).astype(float),
        "log_uranium": rng.normal(0, 1, 12),
        "log_radon": rng.normal(1.2, 0.8, 12),
    }
