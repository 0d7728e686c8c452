"""Boltzmann machines: sums over states, the optimal diagonal, the relaxation's truth, its base."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from references import reference
from scipy.linalg import block_diag
from scipy.optimize import least_squares, minimize
from scipy.special import logsumexp
from scipy.stats import chi2, multivariate_normal, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models import boltzmann_states
from harness.models.boltzmann import (
    BoltzmannMachine,
    BoltzmannRelaxation,
    generate,
    relax,
)
from harness.models.boltzmann_diagonal import RELATIVE_GAP, optimal_diagonal
from harness.models.boltzmann_mean_field import mean_field_base, mean_field_points
from harness.models.boltzmann_states import sum_states

STORED = {"pe_paper_params_and_moms_d28": 28, **{f"params_and_moms_{i}": 30 for i in range(10)}}


def strong_machine(num_units: int, seed: int) -> BoltzmannMachine:
    """Return a machine with biases strong enough that no two moments are alike."""
    machine = generate(num_units, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 100)
    return BoltzmannMachine(machine.weights, rng.normal(0.2, 0.7, num_units))


def brute_force(machine: BoltzmannMachine) -> tuple[float, FloatArray, FloatArray]:
    """States, shape (2^d_b, d_b), their probabilities, and log Z_b, one state after the other."""
    states = np.array(list(product([-1.0, 1.0], repeat=len(machine.biases))))
    energy = np.array([s @ machine.weights @ s / 2 + machine.biases @ s for s in states])
    log_z = float(logsumexp(energy))
    return log_z, states, np.exp(energy - log_z)


@pytest.mark.parametrize("num_units", [2, 3, 4, 5, 7, 10])
def test_sums_over_states_are_those_of_brute_force(num_units: int) -> None:
    machine = strong_machine(num_units, num_units)
    log_z, states, probability = brute_force(machine)
    ours = sum_states(machine.weights, machine.biases)
    assert ours.log_z == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(ours.expected_s, probability @ states, rtol=0, atol=1e-13)
    second = states.T @ (probability[:, None] * states)
    np.testing.assert_allclose(ours.expected_ss, second, rtol=0, atol=1e-13)


def test_a_single_unit_and_free_units() -> None:
    """Without weights units are independent, with means tanh(b)."""
    one = sum_states(np.zeros((1, 1)), np.array([0.3]))
    assert one.log_z == pytest.approx(np.log(2 * np.cosh(0.3)), rel=1e-14)
    biases = np.linspace(-2, 3, 17)
    free = sum_states(np.zeros((17, 17)), biases)
    assert free.log_z == pytest.approx(np.log(2 * np.cosh(biases)).sum(), rel=1e-13)
    mean = np.tanh(biases)
    np.testing.assert_allclose(free.expected_s, mean, atol=1e-13)
    expected = np.outer(mean, mean)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(free.expected_ss, expected, atol=1e-13)


def test_thirty_units_factor_into_three_machines_of_ten() -> None:
    """A machine of separate parts, its units shuffled: each half has units of every part."""
    parts = [strong_machine(10, seed) for seed in (1, 2, 3)]
    log_z, mean, second = 0.0, [], []
    for part in parts:
        part_log_z, states, probability = brute_force(part)
        log_z += part_log_z
        mean.append(probability @ states)
        second.append(states.T @ (probability[:, None] * states) - np.outer(mean[-1], mean[-1]))
    order = np.random.default_rng(5).permutation(30)
    first = np.concatenate(mean)[order]
    expected = block_diag(*second)[np.ix_(order, order)] + np.outer(first, first)
    weights = block_diag(*[part.weights for part in parts])[np.ix_(order, order)]
    biases = np.concatenate([part.biases for part in parts])[order]
    ours = sum_states(weights, biases)
    assert ours.log_z == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(ours.expected_s, first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.expected_ss, expected, rtol=0, atol=1e-12)


def test_draws_of_states_have_their_exact_frequencies() -> None:
    machine = strong_machine(6, 8)
    _, states, probability = brute_force(machine)
    count = 40_000
    drawn = sum_states(machine.weights, machine.biases).draw(count, np.random.default_rng(1))
    code = ((drawn + 1) / 2) @ 2.0 ** np.arange(6)[::-1]  # the order of itertools.product
    found = np.bincount(code.astype(int), minlength=64)
    assert np.array_equal(states[37], [1, -1, -1, 1, -1, 1])
    # Pearson's statistic, states expected fewer than 5 times taken together.
    rare = probability * count < 5
    expected = np.append(probability[~rare], probability[rare].sum()) * count
    seen = np.append(found[~rare], found[rare].sum())
    kept = expected > 0
    statistic = float(np.sum((seen - expected)[kept] ** 2 / expected[kept]))
    assert chi2.sf(statistic, kept.sum() - 1) > 1e-4


def test_draws_do_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = strong_machine(9, 2)
    whole = sum_states(machine.weights, machine.biases)
    monkeypatch.setattr(boltzmann_states, "_BLOCK", 3)
    blocked = sum_states(machine.weights, machine.biases)
    assert blocked.log_z == pytest.approx(whole.log_z, rel=1e-14)
    np.testing.assert_allclose(blocked.expected_ss, whole.expected_ss, rtol=0, atol=1e-14)
    assert blocked.draw(10, np.random.default_rng(0)).shape == (10, 9)
    assert blocked.draw(0, np.random.default_rng(0)).shape == (0, 9)


def test_the_recipe() -> None:
    machine = generate(40, np.random.default_rng(3))
    weights = machine.weights
    assert np.array_equal(weights, weights.T)
    assert np.array_equal(np.diag(weights), np.zeros(40))
    again = generate(40, np.random.default_rng(3))
    assert np.array_equal(again.weights, weights)
    assert not np.array_equal(generate(40, np.random.default_rng(4)).weights, weights)
    # The same draws in the documented order.
    rng = np.random.default_rng(3)
    rotation = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    e = 6 * np.tanh(2 * rng.standard_normal(40))
    off_diagonal = ~np.eye(40, dtype=bool)
    np.testing.assert_allclose(
        weights[off_diagonal], (rotation @ np.diag(e) @ rotation.T)[off_diagonal], atol=1e-13
    )
    np.testing.assert_allclose(machine.biases, 0.1 * rng.standard_normal(40), rtol=1e-15)


def test_the_rotation_is_uniform() -> None:
    """Moments of W_12 = sum_i R_1i R_2i e_i and W_23 for three units.

    The e_i are independent with mean 0, and E[R_1i^2 R_2i^2] = 1 / (n (n + 2)) under the Haar
    measure, so that E[W_12^2] = E[e^2] / (n + 2); turning a row's sign shows E[W_12 W_23] = 0.
    """
    rng = np.random.default_rng(11)
    product_of_three = []
    square = []
    for _ in range(4000):
        w = generate(3, rng).weights
        product_of_three.append(w[0, 1] * w[1, 2])
        square.append(w[0, 1] ** 2)
    z = np.random.default_rng(1).standard_normal(400_000)
    expected = float(np.mean((6 * np.tanh(2 * z)) ** 2)) / 5
    for values, truth in ((product_of_three, 0.0), (square, expected)):
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - truth) < 4.5 * error


@pytest.mark.parametrize(("num_units", "seed"), [(2, 0), (3, 1), (8, 2), (28, 3), (30, 4), (40, 5)])
def test_the_diagonal_is_optimal(num_units: int, seed: int) -> None:
    """A dual point found from the primal's face alone: complementary slackness and the gap."""
    weights = generate(num_units, np.random.default_rng(seed)).weights
    solution = optimal_diagonal(weights)
    matrix = weights + np.diag(solution.diagonal)
    eigenvalue, vector = np.linalg.eigh(matrix)
    largest = eigenvalue[-1]
    assert eigenvalue[0] > 0
    assert solution.largest_eigenvalue == pytest.approx(largest, rel=1e-12)
    assert 0 <= largest - solution.lower_bound <= RELATIVE_GAP * largest
    # KKT: X on the kernel, Y on the top eigenspace, both positive, diag X = diag Y, tr Y = 1.
    kernel = vector[:, eigenvalue < 1e-5 * largest]
    top = vector[:, eigenvalue > (1 - 1e-5) * largest]
    assert kernel.shape[1] >= 1
    assert top.shape[1] >= 1
    x, y = dual_on_faces(kernel, top)
    np.testing.assert_allclose(np.diag(x), np.diag(y), rtol=0, atol=1e-6)
    assert np.trace(y) == pytest.approx(1, abs=1e-6)
    # Weak duality: tr((Y - X) W) is at most the optimum; ours reaches it.
    assert np.sum((y - x) * weights) == pytest.approx(largest, rel=1e-5)


def dual_on_faces(kernel: FloatArray, top: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive semi-definite X = K FF' K', Y = T GG' T' with diag X = diag Y, tr Y = 1."""
    k, t = kernel.shape[1], top.shape[1]

    def factors(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        return kernel @ v[: k * k].reshape(k, k), top @ v[k * k :].reshape(t, t)

    def residual(v: FloatArray) -> FloatArray:
        f, g = factors(v)
        return np.append((f**2).sum(axis=1) - (g**2).sum(axis=1), (g**2).sum() - 1)

    start = np.concatenate([np.eye(k).ravel(), np.eye(t).ravel()]) / np.sqrt(k + t)
    f, g = factors(least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x)
    return f @ f.T, g @ g.T


def test_the_diagonal_by_hand_and_by_search() -> None:
    """Two units: eigenvalues d +- w, best at d = |w|.  Three: a search over the diagonals."""
    two = optimal_diagonal(np.array([[0.0, -1.5], [-1.5, 0.0]]))
    np.testing.assert_allclose(two.diagonal, [1.5, 1.5], rtol=1e-7)
    assert two.largest_eigenvalue == pytest.approx(3, rel=1e-9)
    weights = np.array([[0, 1.0, -0.4], [1.0, 0, 0.7], [-0.4, 0.7, 0]])

    def objective(d: FloatArray) -> float:
        eigenvalue = np.linalg.eigvalsh(weights + np.diag(d))
        return float(eigenvalue[-1] + 1e3 * max(0.0, -eigenvalue[0]))

    found = min(
        minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).fun
        for start in np.random.default_rng(0).uniform(0, 3, (6, 3))
    )
    best = optimal_diagonal(weights).largest_eigenvalue
    assert best <= found + 1e-8
    assert found == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_diagonal_scales_with_the_weights(scale: float) -> None:
    weights = generate(12, np.random.default_rng(9)).weights
    one, other = optimal_diagonal(weights), optimal_diagonal(scale * weights)
    assert other.largest_eigenvalue == pytest.approx(scale * one.largest_eigenvalue, rel=1e-8)
    assert relax(BoltzmannMachine(scale * weights, np.zeros(12))).q.shape[1] < 12


def test_the_relaxation_is_the_marginal_of_its_mixture() -> None:
    """Pointwise: prod cosh exp(-x'x/2) / Z = sum_s p(s) N(x; Q's, I), with Z from equation 52."""
    machine = strong_machine(8, 4)
    relaxation = relax(machine)
    q = relaxation.q
    assert q.shape[1] < 8
    matrix = machine.weights + np.diag(relaxation.diagonal)
    np.testing.assert_allclose(q @ q.T, matrix, rtol=0, atol=1e-7)
    gram = q.T @ q
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    assert np.all(np.diff(np.diag(gram)) <= 0)
    _, states, probability = brute_force(machine)
    truth = relaxation.exact()
    rng = np.random.default_rng(0)
    for x in rng.normal(0, 3, (20, q.shape[1])):
        log_gamma = -x @ x / 2 + float(np.sum(np.log(np.cosh(q @ x + machine.biases))))
        coordinate = np.asarray(norm.logpdf(x, states @ q, 1.0)).sum(axis=1)
        marginal = float(logsumexp(coordinate, b=probability))
        assert log_gamma - truth.log_z == pytest.approx(marginal, rel=0, abs=1e-7)
    # Moments of a Gaussian mixture, from its components.
    mean = probability @ states @ q
    second = (states @ q).T @ (probability[:, None] * (states @ q)) + np.eye(q.shape[1])
    np.testing.assert_allclose(truth.expected_x, mean, atol=1e-12)
    np.testing.assert_allclose(truth.expected_xx, second, atol=1e-11)
    np.testing.assert_allclose(truth.covariance, second - np.outer(mean, mean), atol=1e-11)


def test_log_z_by_quadrature() -> None:
    """Two and three units have relaxations in one and two dimensions: integrate the density."""
    for num_units in (2, 3):
        machine = strong_machine(num_units, 3)
        relaxation = relax(machine)
        d = relaxation.q.shape[1]
        assert d == num_units - 1
        axis = np.linspace(-25, 25, 801)
        grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
        y = grid @ relaxation.q.T + machine.biases
        log_gamma = np.logaddexp(y, -y).sum(axis=1) - num_units * np.log(2)
        log_gamma -= np.square(grid).sum(axis=1) / 2
        weight = np.exp(log_gamma) * (axis[1] - axis[0]) ** d
        truth = relaxation.exact()
        assert np.log(weight.sum()) == pytest.approx(truth.log_z, abs=1e-8)
        np.testing.assert_allclose(weight @ grid / weight.sum(), truth.expected_x, atol=1e-8)


def test_exact_draws_have_the_moments_of_the_relaxation() -> None:
    truth = relax(generate(28, np.random.default_rng(6))).exact()
    count = 20_000
    draws = truth.draw(count, np.random.default_rng(2))
    for values, expected in (
        (draws, truth.expected_x),
        (np.einsum("ni,nj->nij", draws, draws).reshape(count, -1), truth.expected_xx.ravel()),
    ):
        z = (values.mean(axis=0) - expected) / (values.std(axis=0) / np.sqrt(count))
        # A z score beyond 5 has probability 6e-7, and there are fewer than 1000 of them.
        assert np.abs(z).max() < 5
        assert np.abs(z).max() > 0.5
    other = truth.draw(5, np.random.default_rng(3))
    assert not np.allclose(other, truth.draw(5, np.random.default_rng(4)))
    assert np.array_equal(other, truth.draw(5, np.random.default_rng(3)))


def test_mean_field_points_are_fixed_and_bound_the_evidence() -> None:
    machine = strong_machine(10, 12)
    log_z, _, _ = brute_force(machine)
    point = mean_field_points(machine, np.random.default_rng(0), starts=200)
    assert len(point.mean) > 1
    np.testing.assert_allclose(
        point.mean, np.tanh(point.mean @ machine.weights + machine.biases), atol=1e-8
    )
    assert np.all(point.log_bound < log_z)
    assert np.all(np.diff(point.log_bound) <= 0)
    gap = np.abs(point.mean[:, None] - point.mean).max(axis=2) + np.eye(len(point.mean))
    assert gap.min() > 1e-5
    # The bound is log Z_b - KL(product || machine), by a sum over all states.
    _, states, probability = brute_force(machine)
    for mean, bound in zip(point.mean, point.log_bound, strict=True):
        product_mass = np.prod((1 + states * mean) / 2, axis=1)
        some = product_mass > 0
        divergence = np.sum(
            product_mass[some] * (np.log(product_mass[some]) - np.log(probability[some]))
        )
        assert bound == pytest.approx(log_z - divergence, abs=1e-8)
    again = mean_field_points(machine, np.random.default_rng(1), starts=200)
    assert again.log_bound[0] == pytest.approx(point.log_bound[0], abs=1e-9)


def test_mean_field_base_is_the_mixture_of_its_points() -> None:
    relaxation = relax(strong_machine(8, 5))
    base = mean_field_base(relaxation, np.random.default_rng(0), starts=50)
    point = mean_field_points(relaxation.machine, np.random.default_rng(0), starts=50)
    q = relaxation.q
    weight = np.exp(point.log_bound) / np.exp(point.log_bound).sum()
    mean, second = np.zeros(q.shape[1]), np.zeros((q.shape[1], q.shape[1]))
    for w, m in zip(weight, point.mean, strict=True):
        mean += w * q.T @ m
        within = q.T @ np.diag(1 - m**2) @ q + np.eye(q.shape[1])
        second += w * (within + np.outer(q.T @ m, q.T @ m))
    np.testing.assert_allclose(base.mean, mean, atol=1e-12)
    np.testing.assert_allclose(base.covariance, second - np.outer(mean, mean), atol=1e-10)
    truth = relaxation.exact()
    one_point = relaxation.log_z_from(float(point.log_bound[0]))
    assert one_point < truth.log_z
    assert one_point <= base.log_zeta
    # Without weights the mean field is exact.
    free = BoltzmannRelaxation(
        BoltzmannMachine(np.zeros((3, 3)), np.array([0.5, -1.0, 0.2])), np.ones(3), np.eye(3)
    )
    exact, fitted = free.exact(), mean_field_base(free, np.random.default_rng(0), starts=3)
    assert fitted.log_zeta == pytest.approx(exact.log_z, rel=1e-12)
    np.testing.assert_allclose(fitted.mean, exact.expected_x, rtol=1e-12)
    np.testing.assert_allclose(fitted.covariance, exact.covariance, rtol=0, atol=1e-12)


def test_the_base_of_a_published_size_is_near_the_truth() -> None:
    relaxation = relax(generate(30, np.random.default_rng(7)))
    truth = relaxation.exact()
    base = mean_field_base(relaxation, np.random.default_rng(0))
    assert abs(base.log_zeta - truth.log_z) < 1.5
    exact = multivariate_normal(truth.expected_x, truth.covariance)
    assert float(exact.logpdf(truth.expected_x)) - float(exact.logpdf(base.mean)) < 10


def test_bad_input_is_refused() -> None:
    two = np.array([[0.0, 1.0], [1.0, 0.0]])
    zero = np.zeros(2)
    for weights, biases, message in (
        (two, np.zeros(3), "shapes"),
        (two[:1], zero, "shapes"),
        (np.empty((0, 0)), np.empty(0), "shapes"),
        (two, np.zeros((2, 1)), "shapes"),
        (two * np.nan, zero, "not finite"),
        (two, np.array([0, np.inf]), "not finite"),
        (two + np.eye(2), zero, "zero diagonal"),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), zero, "symmetric"),
    ):
        with pytest.raises(DataError, match=message):
            BoltzmannMachine(weights, biases)
    with pytest.raises(DataError, match="2 units or more; got 1"):
        generate(1, np.random.default_rng(0))
    machine = BoltzmannMachine(two, zero)
    with pytest.raises(DataError, match="2 finite values"):
        relax(machine, [1.0])
    with pytest.raises(DataError, match="2 finite values"):
        relax(machine, [1.0, np.nan])
    with pytest.raises(DataError, match="positive semi-definite"):
        relax(machine, [0.9, 0.9])
    with pytest.raises(DataError, match="no relaxation"):
        relax(BoltzmannMachine(np.zeros((2, 2)), zero))
    with pytest.raises(DataError, match="1 start or more; got 0"):
        mean_field_points(machine, np.random.default_rng(0), starts=0)
    with pytest.raises(DataError, match="up to d_b = 30; got 31"):
        sum_states(np.zeros((31, 31)), np.zeros(31))
    with pytest.raises(DataError, match="too large to sum"):
        sum_states(1e4 * (np.ones((4, 4)) - np.eye(4)), np.zeros(4))


@pytest.mark.parametrize("name", STORED)
def test_published_instances(name: str) -> None:
    """Stored log Z, mean and covariance of the published instances, rotation put aside.

    What is not stored is the authors' diagonal, a rough solution of a programme whose solution
    is not unique: it leaves W + D with small negative eigenvalues, which they drop.  Its d_b
    unknowns are found from the 55 to 59 invariants of the stored mean and covariance (spectrum,
    projections, log Z) and the d (d - 1) / 2 equations that the basis is that of W + D.
    """
    with np.load(reference(f"boltzmann/{name}.npz")) as stored:
        machine = BoltzmannMachine(stored["weights"], stored["biases"])
        mean, covariance = stored["expc_x"], stored["covar_x"]
        log_z = float(stored["log_norm_const_x"])
    assert machine.biases.size == STORED[name]
    best = optimal_diagonal(machine.weights)
    states = sum_states(machine.weights, machine.biases)
    spread = states.expected_ss - np.outer(states.expected_s, states.expected_s)
    d = len(mean)
    spectrum, basis = np.linalg.eigh(covariance - np.eye(d))
    projection = basis.T @ mean
    no_trace = BoltzmannRelaxation(machine, np.zeros(STORED[name]), np.zeros((STORED[name], d)))
    trace = 2 * (log_z - no_trace.log_z_from(states.log_z))

    def factor(diagonal: FloatArray) -> tuple[FloatArray, FloatArray]:
        eigenvalue, vector = np.linalg.eigh(machine.weights + np.diag(diagonal))
        return eigenvalue, vector[:, -d:] * np.sqrt(np.abs(eigenvalue[-d:]))

    def residual(diagonal: FloatArray) -> FloatArray:
        eigenvalue, q = factor(diagonal)
        found, rotation = np.linalg.eigh(q.T @ spread @ q)
        along = rotation.T @ q.T @ states.expected_s
        turn = basis * np.sign(along * projection) @ rotation.T
        off_diagonal = ((turn * eigenvalue[-d:]) @ turn.T)[np.triu_indices(d, 1)]
        return np.concatenate(
            [
                found - spectrum,
                np.abs(along) - np.abs(projection),
                off_diagonal,
                [diagonal.sum() - trace],
            ]
        )

    rng = np.random.default_rng(0)
    for attempt in range(30):  # signs flip where a projection is nearly 0: try from elsewhere
        start = best.diagonal + (0.03 * rng.normal(size=len(best.diagonal)) if attempt else 0)
        fit = least_squares(
            residual, start, method="lm", max_nfev=1000, xtol=1e-14, ftol=1e-14, gtol=1e-14
        )
        if np.abs(fit.fun).max() < 1e-7:
            break
    eigenvalue, q = factor(fit.x)
    # Their W + D is one of an approximate solution: hardly better, and hardly infeasible.
    assert eigenvalue[0] > -5e-3
    assert eigenvalue[-1] > best.lower_bound - 0.01
    truth = BoltzmannRelaxation(machine, fit.x, q).exact()
    assert truth.log_z == pytest.approx(log_z, abs=1e-6)
    ours, rotation = np.linalg.eigh(truth.covariance)
    np.testing.assert_allclose(ours, spectrum + 1, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        np.abs(rotation.T @ truth.expected_x), np.abs(projection), rtol=0, atol=1e-6
    )
    assert np.abs(fit.fun).max() < 1e-6
