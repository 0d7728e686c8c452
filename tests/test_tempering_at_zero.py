"""A likelihood of zero is harmless at beta = 0: functions of ours, and every shipped program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import expit
from scipy.stats import multivariate_normal
from stan_density import StanDensity, stanli
from test_radon_density import MODEL as RADON
from test_radon_density import terms

from harness.arrays import FloatArray
from harness.engine.compile import compile_programs
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.folders import shipped
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.models.gaussian_mixture import GaussianMixture
from harness.models.shapes import Banana
from harness.path import gaussian_base

INF = np.inf
KNOT, LOG_G = [0.0, 0.3, 1.0], [0.7, -0.2, 0.4]
STAN = [str(shipped("stan"))]
HEAD = "functions {\n#include tempering.stanfunctions\n}\n"


def function(name: str) -> Any:
    return stanli.Function(name, stan_code=HEAD, include_paths=STAN)


@pytest.mark.parametrize("start", [0.0, 0.1])
def test_masses_where_gamma_is_zero(start: float) -> None:
    """0^beta is 1 at beta = 0 and 0 elsewhere: of a ladder the rung at 0 is left, if there is."""
    knot = [start, *KNOT[1:]]
    path = {"delta": INF, "knot": knot, "log_g": LOG_G}
    masses = function("inv_temp_log_masses")
    left = LOG_G[0] if start == 0 else -INF
    assert np.array_equal(masses(**path, ladder=1), [left, -INF, -INF])
    assert np.array_equal(masses(**path, ladder=0), [-INF, -INF])
    total = function("log_tempered_mass")
    assert total(**path, ladder=1) == left
    assert total(**path, ladder=0) == -INF
    assert total(delta=INF, knot=[0.0, 1.0], log_g=[0.0, 0.0], ladder=0) == -INF
    for ladder in (0, 1):
        weight = function("continuous_tempering_log_weight")(**path, ladder=ladder)
        assert np.array_equal(weight, [-INF, 0])


def test_masses_tend_to_those_where_gamma_is_zero() -> None:
    """The last finite Delta is next to the infinite one."""
    path = {"knot": KNOT, "log_g": LOG_G, "ladder": 1}
    for name in ("inv_temp_log_masses", "log_tempered_mass", "continuous_tempering_log_weight"):
        far, beyond = (np.asarray(function(name)(delta=each, **path)) for each in (1e300, INF))
        np.testing.assert_array_equal(np.maximum(far, -1e290), np.maximum(beyond, -1e290))


def test_the_path_where_gamma_is_zero() -> None:
    scalar = function("geometric_path(real,real,real,real)")
    assert scalar(log_gamma=-INF, log_base=-1.5, log_zeta=0.3, inv_temp=0.0) == -1.5
    assert scalar(log_gamma=-INF, log_base=-1.5, log_zeta=0.3, inv_temp=1e-300) == -INF
    vector = function("geometric_path(vector,vector,real,vector)")
    both = {"log_gamma": [-INF, -INF, 2.0], "log_zeta": 0.5, "inv_temp": [0.0, 0.2, 0.0]}
    assert np.array_equal(vector(**both, log_base=[-1.5, 1.0, -3.0]), [-1.5, -INF, -3.0])


# x < 0 has a likelihood of zero, which passes no gradient on; the base is normal.
PROGRAM = """
data { int G; vector[G] knot; vector[G] log_g; int form; vector[2] beta; }
parameters { vector[2] x; }
model {
  vector[2] log_gamma;
  vector[2] log_base;
  for (i in 1 : 2) {
    log_gamma[i] = x[i] < 0 ? negative_infinity() : -x[i] - square(x[i]) / 2;
    log_base[i] = -square(x[i]) / 2;
  }
  if (form == 0) {
    target += log_base[1]
              + log_tempered_mass(log_base[1] - log_gamma[1], knot, log_g, 1)
              - square(x[2]) / 2;
  } else if (form == 1) {
    target += geometric_path(log_gamma[1], log_base[1], 0.2, beta[1])
              - square(x[2]) / 2;
  } else {
    vector[2] log_q = geometric_path(log_gamma, log_base, 0.2, beta);
    target += log_sum_exp(log_gamma - log_q) - log(2) + sum(log_q);
  }
}
"""
AT = np.array([-1.3, 0.6])


def expected(form: int) -> tuple[float, FloatArray]:
    """By hand, with beta_1 = 0: x_1 counts for the base alone."""
    base = -0.5 * float(np.sum(AT**2))
    if form == 0:
        return base + LOG_G[0], -AT
    if form == 1:
        return base, -AT
    # log (0 + gamma_2 / q_2) / 2 + log q_1 + log q_2 = log gamma_2 - log 2 + log b_1
    return base - AT[1] - np.log(2), np.array([-AT[0], -AT[1] - 1])


def program_data(form: int) -> dict[str, Any]:
    return {"G": 3, "knot": KNOT, "log_g": LOG_G, "form": form, "beta": [0.0, 0.4]}


@pytest.mark.parametrize("form", range(3))
def test_value_and_gradient(form: int) -> None:
    model = stanli.Model(stan_code=HEAD + PROGRAM, data=program_data(form), include_paths=STAN)
    value, gradient = model.log_prob_grad(AT.tolist())
    assert value == pytest.approx(expected(form)[0], rel=1e-13)
    np.testing.assert_allclose(gradient, expected(form)[1], rtol=1e-12)


def compiled_log_prob(
    exe: Path, data: dict[str, Any], values: dict[str, Any], folder: Path
) -> tuple[float, FloatArray]:
    """Log density and gradient of a compiled program by CmdStan's log_prob."""
    files = {"data": folder / "data.json", "values": folder / "values.json"}
    files["data"].write_text(json.dumps(data))
    files["values"].write_text(json.dumps(values))
    made = folder / "log_prob.csv"
    subprocess.run(
        [
            *(str(exe), "log_prob", f"constrained_params={files['values']}"),
            *("data", f"file={files['data']}", "output", f"file={made}", "sig_figs=17"),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    rows = [row for row in made.read_text().splitlines() if not row.startswith("#")]
    value, *gradient = map(float, rows[-1].split(","))
    return value, np.array(gradient)


@pytest.mark.compiled
def test_value_and_gradient_in_cmdstan(
    quiet_cmdstanpy: None, cmdstan_home: Path, tmp_path: Path
) -> None:
    assert cmdstan_home.is_dir()
    path = tmp_path / "at_zero.stan"
    path.write_text(HEAD + PROGRAM)
    program = StanProgram(path, (shipped("stan"),))
    exe = compile_programs([program], require_cmdstan())[program].exe
    for form in range(3):
        value, gradient = compiled_log_prob(exe, program_data(form), {"x": AT.tolist()}, tmp_path)
        assert value == pytest.approx(expected(form)[0], rel=1e-13)
        np.testing.assert_allclose(gradient, expected(form)[1], rtol=1e-12)


LADDER = list(zip(KNOT, LOG_G, strict=True))
ZETA = 1.7


class Shipped:
    """A shipped model, a point where its density is zero, one where it is not, and log b there.

    Points are on Stan's unconstrained space, and log b with its Jacobian.
    """

    def __init__(self, name: str) -> None:
        self.base = None
        self.zeta = {"log_zeta": ZETA}
        if name == "mixture":
            # So narrow that far out the square overflows.
            narrow = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.array([1e-150]))
            self.model = narrow.model("narrow", lower=-1e6, upper=1e6)
            self.zero, self.good = np.array([0.2]), np.array([0.0])
            self.log_gamma = -0.5 * np.log(2 * np.pi) + 150 * np.log(10)
        elif name == "banana":
            self.model = Banana(v=3.0, b=0.6).model()
            self.base = gaussian_base([0.0, 0.0], 1e160 * np.eye(2), log_zeta=ZETA)
            self.zero, self.good = np.array([2e80, -1e80]), np.array([0.0, -1.8])
            self.log_gamma = float(-np.log(2 * np.pi) - 0.5 * np.log(3))
            self.zeta = {}
        else:
            self.model = RADON
            self.good = np.full(10, 0.1)
            self.zero = self.good.copy()
            self.zero[4] = -400.0  # log of the measurements' standard deviation
            self.log_gamma = terms(self.good)[0]

    def log_base(self, u: FloatArray) -> float:
        """Log base density, the Jacobian of Stan's maps included."""
        if self.base is not None:
            normal = multivariate_normal(self.base.mean, self.base.covariance)
            return float(normal.logpdf(u))
        if self.model is RADON:
            return terms(u)[1]
        return float(np.log(expit(u) * expit(-u)).sum())  # uniform on the box

    def log_extended_base(self, u: FloatArray) -> float:
        """The same of pseudo-extended programs: the mixture's has log b = 0."""
        wide = np.log(2e6) if self.model.name == "narrow" else 0.0
        return self.log_base(u) + wide

    def has(self, variant: str) -> bool:
        """Whether the model has a variant; it has those that something runs."""
        return (self.model.folder / f"{variant}.stan").is_file()

    def density(self, variant: str, data: dict[str, Any]) -> StanDensity:
        return StanDensity(self.model.program(variant), {**self.model.data, **data})


CASES = ["mixture", "banana", "radon"]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", CASES)
def test_shipped_joint_tempering(name: str) -> None:
    case = Shipped(name)
    path = tempering_data(case.model, case.base, log_g=LADDER, **case.zeta)
    expected = case.log_base(case.zero) + LOG_G[0]
    collapsed = case.density("collapsed_tempering", path | {"ladder": 1})
    assert collapsed.value(case.zero) == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(collapsed.value(case.good))
    joint_cases = ((0.0, expected), (1e-6, -INF)) if case.has("joint_tempering") else ()
    for inv_temp, value in joint_cases:
        fixed = {"sample_inv_temp": 0, "fixed_inv_temp": [inv_temp]}
        joint = case.density("joint_tempering", path | fixed)
        assert joint.value(case.zero) == pytest.approx(value, rel=1e-12)


def interleaved(model: Model, one: FloatArray, other: FloatArray) -> FloatArray:
    """Two pseudo-samples as Stan has them: each parameter's last axis runs over them."""
    if model is not RADON:
        return np.concatenate([one, other])
    sizes = [1, 1, 1, 1, 1, 3, 2]
    parts = zip(*(np.split(each, np.cumsum(sizes)[:-1]) for each in (one, other)), strict=True)
    return np.concatenate([np.concatenate(pair) for pair in parts])


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", CASES)
def test_shipped_pseudo_extended(name: str) -> None:
    """With beta = 0 for the one where gamma is zero: log gamma_2 - log 2 + log b_1."""
    case = Shipped(name)
    u = interleaved(case.model, case.zero, case.good)
    path: dict[str, Any] = {"base": case.base, **case.zeta}
    wanted = case.log_base(case.good) + case.log_gamma - np.log(2)
    # gamma_2 with the Jacobian: where the base has a density of its own, that is taken out.
    if case.model.name == "narrow":
        wanted += np.log(2e6)
    if case.base is not None:
        wanted -= case.log_base(case.good)
    wanted += case.log_extended_base(case.zero)
    fixed = pseudo_extended_data(case.model, 2, [0.0, 0.5], **path)
    value = case.density("pseudo_extended", fixed).value(u)
    assert value == pytest.approx(wanted, rel=1e-12)
    if not case.has("collapsed_pseudo_extended"):
        return
    data = pseudo_extended_data(case.model, 2, None, log_g=LADDER, **path) | {"ladder": 1}
    collapsed = case.density("collapsed_pseudo_extended", data)
    # q_2 drops out of gamma_2 / q_2 times q_2, and q_1 is b_1 times the weight of the rung at 0.
    assert collapsed.value(u) == pytest.approx(wanted + LOG_G[0], rel=1e-12)
