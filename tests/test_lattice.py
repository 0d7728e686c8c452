"""Potts models: each update leaves its law as it is, by enumeration; log Z against exact sums.

Transition matrices are made from the conditional probabilities that the samplers draw from, so that
stationarity holds to rounding; that they draw from these is checked by counting.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import binom

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.lattice.acceptance_ratio import BondBridges, bridged_log_z
from harness.lattice.annealing import Kernel, annealed_lattice
from harness.lattice.gibbs import (
    conditional_log_weights,
    eligible,
    floor_sweep,
    gibbs_sweep,
    lowest_number,
    mixture_weights,
    neighbour_colours,
)
from harness.lattice.graph import Graph, grid, torus
from harness.lattice.nested import (
    Kind,
    LatticeNested,
    LatticeNesting,
    log_z_of_prior,
    nested_lattice,
)
from harness.lattice.potts import (
    BoolArray,
    agreeing,
    all_states,
    coupling_of_ising,
    log_weight,
    log_z_of_ising,
    ordering_coupling,
    uniform_states,
)
from harness.lattice.random_cluster import (
    floor_log_weights,
    number_probabilities,
    place_bonds,
    weighted_bond_step,
)
from harness.lattice.swendsen_wang import (
    bond_probabilities,
    clusters,
    draw_colours,
    draw_flips,
    swendsen_wang_step,
)
from harness.lattice.transfer import enumerated_log_z, kaufman_log_z, transfer_log_z
from harness.samplers.nested_particles import Floor

FOUR = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]))
"""Four nodes on a circle and one diagonal: with circles of odd length."""
MIXED = np.array([0.7, -0.9, 0.4, 1.1, -0.3])
# Sums of some hundred numbers below 1 in double precision.
ROUNDING = 1e-14


@cache
def all_bonds(graph: Graph = FOUR) -> BoolArray:
    return np.array(list(itertools.product([False, True], repeat=graph.size)))


def potts(colours: int, coupling: float | FloatArray) -> FloatArray:
    log_p = log_weight(FOUR, all_states(4, colours), coupling)
    p: FloatArray = np.exp(log_p - np.logaddexp.reduce(log_p))
    return p


def counted(states: np.ndarray, colours: int) -> FloatArray:
    index = states.astype(int) @ colours ** np.arange(states.shape[1])[::-1]
    return np.bincount(index, minlength=colours ** states.shape[1]).astype(float)


def check_counts(count: FloatArray, probability: FloatArray) -> None:
    """Counts follow probabilities: a chi-squared test at a level of 1e-4, cells of 5 or more."""
    expected = count.sum() * probability / probability.sum()
    small = expected < 5
    assert count[expected == 0].sum() == 0
    seen = np.append(count[~small], count[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    square = np.sum((seen[keep] - wanted[keep]) ** 2 / wanted[keep])
    assert stats.chi2.sf(square, max(1, keep.sum() - 1)) > 1e-4


# Graphs and the model


def test_graphs() -> None:
    lattice = torus(4, 6)
    assert lattice.size == 48
    assert len(lattice.groups) == 2  # a checkerboard
    assert np.all(np.bincount(lattice.edges.ravel()) == 4)
    assert grid(3, 5).size == 2 * 5 + 3 * 4
    assert len(grid(3, 5).groups) == 2
    assert len(torus(3, 3).groups) >= 3
    for graph in (lattice, torus(3, 5), FOUR, grid(3, 5)):
        group = np.empty(graph.nodes)
        for k, each in enumerate(graph.groups):
            group[each.members] = k
        assert np.all(group[graph.edges[:, 0]] != group[graph.edges[:, 1]])
    with pytest.raises(DataError, match="two different nodes"):
        Graph(3, np.array([[1, 1]]))
    with pytest.raises(DataError, match="nodes 0 to 2"):
        Graph(3, np.array([[1, 3]]))
    with pytest.raises(DataError, match="2 or longer"):
        torus(1, 4)


def test_the_model_and_its_conventions() -> None:
    """The sum over y = +1 or -1, written out, is the Potts model with twice the coupling."""
    theta = 0.37
    spins = 2 * all_states(4, 2) - 1
    direct = np.log(np.exp(theta * (spins[:, FOUR.edges[:, 0]] * spins[:, FOUR.edges[:, 1]])
                           .sum(axis=1)).sum())  # fmt: skip
    log_z = enumerated_log_z(FOUR, 2, coupling_of_ising(theta))
    assert log_z_of_ising(log_z, theta, FOUR) == pytest.approx(direct, abs=1e-12)
    assert enumerated_log_z(FOUR, 3, 0.0) == pytest.approx(4 * np.log(3))
    assert ordering_coupling(10) == pytest.approx(1.42606, abs=1e-5)
    state = np.array([[0, 0, 1, 2]], dtype=np.int16)
    # Edges 1-2, 2-3, 3-0 and 0-2 differ.
    assert log_weight(FOUR, state, MIXED)[0] == pytest.approx(-MIXED[1:].sum())


@pytest.mark.parametrize("colours", [2, 3])
def test_the_random_cluster_sum(colours: int) -> None:
    """Z_P = e^(-J E) sum_d (e^J - 1)^D q^C."""
    bonds, coupling = all_bonds(), 0.83
    parts = np.array([clusters(FOUR, each[None])[0] for each in bonds])
    total = np.sum((np.exp(coupling) - 1) ** bonds.sum(axis=1) * float(colours) ** parts)
    exact = enumerated_log_z(FOUR, colours, coupling)
    assert np.log(total) - coupling * FOUR.size == pytest.approx(exact, abs=1e-12)


# Exact sums


@pytest.mark.parametrize(("colours", "rows", "columns"), [(2, 4, 3), (3, 3, 3), (2, 2, 3)])
def test_transfer_matrices(colours: int, rows: int, columns: int) -> None:
    for coupling in (0.6, -0.4):
        for graph, periodic in ((torus(rows, columns), True), (grid(rows, columns), False)):
            exact = enumerated_log_z(graph, colours, coupling)
            found = transfer_log_z(rows, columns, colours, coupling, periodic=periodic)
            assert found == pytest.approx(exact, abs=1e-11)


def test_kaufman() -> None:
    for rows, columns, coupling in ((4, 3, 0.7), (3, 4, 1.6), (8, 8, 0.8), (40, 7, 1.0)):
        exact = transfer_log_z(rows, columns, 2, coupling, periodic=True)
        assert kaufman_log_z(rows, columns, coupling) == pytest.approx(exact, abs=1e-10)
    assert kaufman_log_z(16, 16, 1.0) == pytest.approx(7.29621, abs=5e-6)
    # The free grid is another number, so the printed 7.3 is of a torus.
    assert transfer_log_z(16, 16, 2, 1.0, periodic=False) == pytest.approx(12.635, abs=5e-4)
    with pytest.raises(DataError, match="above 0"):
        kaufman_log_z(4, 4, 0.0)
    with pytest.raises(DataError, match="more than 4096"):
        transfer_log_z(4, 13, 2, 1.0, periodic=True)


# Gibbs


@pytest.mark.parametrize("colours", [2, 3])
def test_gibbs_conditionals(colours: int) -> None:
    """Each update of a node is the conditional law, both ways of drawing it."""
    states = all_states(4, colours)
    for coupling in (MIXED, np.full(5, 0.8)):
        p = potts(colours, coupling)
        padded = np.append(coupling, 0.0)
        for members, neighbours, edges in FOUR.groups:
            near = neighbour_colours(FOUR, states, neighbours)
            weight = np.exp(conditional_log_weights(near, colours, padded[edges]))
            if np.all(coupling > 0):
                mixture = mixture_weights(near, 0.8)
                total = np.ones_like(weight)
                for colour, part in zip(near, mixture, strict=True):
                    total += part[..., None] * (colour[..., None] == np.arange(colours))
                assert np.abs(total / weight - 1).max() < ROUNDING
            weight /= weight.sum(axis=-1, keepdims=True)
            for place, node in enumerate(members):
                others = np.delete(states, node, axis=1)
                for k, other in enumerate(others):
                    same = (others == other).all(axis=1)
                    exact = p[same][np.argsort(states[same, node])] / p[same].sum()
                    assert np.abs(exact - weight[k, place]).max() < ROUNDING


@pytest.mark.parametrize("colours", [2, 3])
def test_gibbs_sweeps_draw_from_the_model(colours: int) -> None:
    rng = np.random.default_rng(5)
    for coupling in (0.8, MIXED):
        states = uniform_states(FOUR, colours, 20_000, rng)
        for _ in range(25):
            gibbs_sweep(FOUR, states, colours, coupling, rng)
        check_counts(counted(states, colours), potts(colours, coupling))
    with pytest.raises(DataError, match="5 edges need as many"):
        gibbs_sweep(FOUR, states, colours, np.ones(4), rng)
    with pytest.raises(DataError, match="colours"):
        gibbs_sweep(FOUR, states, 1, 0.3, rng)


# Swendsen-Wang


@pytest.mark.parametrize(("colours", "coupling"), [(2, 0.8), (3, 0.8), (2, MIXED)])
def test_swendsen_wang_leaves_its_joint_law(colours: int, coupling: float | FloatArray) -> None:
    """T = p(s' | d) p(d | s), from the probabilities that are drawn from, and every clustering."""
    states, bonds = all_states(4, colours), all_bonds()
    p = potts(colours, coupling)
    each = bond_probabilities(FOUR, states, coupling)
    given_states = np.prod(np.where(bonds[None], each[:, None], 1 - each[:, None]), axis=-1)
    joint = p[:, None] * given_states
    negative = np.any(np.asarray(coupling) < 0)
    transition = np.zeros((len(states), len(states)))
    for k, bond in enumerate(bonds):
        number, label = clusters(FOUR, bond[None])
        parts = [label[0] == c for c in range(number)]
        for s in np.flatnonzero(given_states[:, k] > 0):
            # Every way to colour or flip the clusters has the same probability.
            ways = list(itertools.product(range(2 if negative else colours), repeat=number))
            for way in ways:
                new = states[s].copy() if negative else np.zeros_like(states[s])
                for part, choice in zip(parts, way, strict=True):
                    new[part] = states[s][part] ^ choice if negative else choice
                to = int(new.astype(int) @ colours ** np.arange(4)[::-1])
                transition[s, to] += given_states[s, k] / len(ways)
                # Colours given bonds: the joint law is the same for each of them.
                assert abs(joint[to, k] - joint[s, k]) < ROUNDING
    assert np.abs(p @ transition - p).max() < ROUNDING
    # The sampler draws from this matrix.
    rng = np.random.default_rng(3)
    start = np.repeat(states[[1, len(states) - 2]], 10_000, axis=0)
    new, _ = swendsen_wang_step(FOUR, start, colours, coupling, rng)
    for k, row in enumerate((1, len(states) - 2)):
        check_counts(counted(new[10_000 * k : 10_000 * (k + 1)], colours), transition[row])


def test_swendsen_wang_of_three_colours_takes_no_negative_coupling() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(DataError, match="2 colours only"):
        swendsen_wang_step(FOUR, uniform_states(FOUR, 3, 2, rng), 3, MIXED, rng)


def test_clusters_and_their_colours() -> None:
    rng = np.random.default_rng(2)
    graph = torus(3, 4)
    bonds = rng.random((50, graph.size)) < 0.4
    number, label = clusters(graph, bonds)
    states = draw_colours(graph, bonds, 1000, rng)
    total = 0
    for row in range(50):
        parts = [{k} for k in range(graph.nodes)]
        for a, b in graph.edges[bonds[row]].tolist():  # union of sets, written out
            one = next(p for p in parts if a in p)
            two = next(p for p in parts if b in p)
            if one is not two:
                one |= two
                parts.remove(two)
        total += len(parts)
        for part in parts:
            assert len(np.unique(label[row, list(part)])) == 1
            assert len(np.unique(states[row, list(part)])) == 1
        assert len(np.unique(label[row])) == len(parts)
    assert number == total
    flipped = draw_flips(graph, bonds, states % 2, rng)
    moved = flipped != states % 2
    assert np.all(moved[:, graph.edges[:, 0]][bonds] == moved[:, graph.edges[:, 1]][bonds])


# Bonds by their number: Algorithm 4.4


def bond_transition(colours: int, log_w: FloatArray) -> FloatArray:
    """All of Algorithm 4.4 as a matrix over bonds."""
    states, bonds = all_states(4, colours), all_bonds()
    same = agreeing(FOUR, states)
    count = bonds.sum(axis=1)
    # No bonds with a weight lead to colours with which no number of bonds has one.
    possible = same.sum(axis=1) >= np.flatnonzero(np.isfinite(log_w))[0]
    number = np.zeros((len(states), 6))
    number[possible] = number_probabilities(same[possible].sum(axis=1), log_w)
    # Bonds given colours.
    fits = ~np.any(bonds[None] & ~same[:, None], axis=-1)
    ways = binom(same.sum(axis=1)[:, None], count)
    to = np.where(fits, number[:, count] / np.where(fits, ways, 1), 0)
    # Colours given bonds.
    agree = fits.T / fits.sum(axis=0)[:, None]
    whole: FloatArray = agree @ to
    return whole


def weights(case: str) -> FloatArray:
    if case == "none":
        return np.zeros(6)
    if case == "coupling":
        of_coupling: FloatArray = np.arange(6.0) * np.log(np.expm1(0.9))
        return of_coupling
    if case == "random":
        random: FloatArray = np.log(np.random.default_rng(8).random(6))
        return random
    of_floor: FloatArray = floor_log_weights(Floor(np.array([2.0]), np.array([0.35])), 5)[0]
    return of_floor


@pytest.mark.parametrize("colours", [2, 3])
@pytest.mark.parametrize("case", ["none", "coupling", "random", "floor"])
def test_weighted_bonds(colours: int, case: str) -> None:
    """The step is in detailed balance with w(D) q^C, for any w, also with a tie's."""
    bonds, log_w = all_bonds(), weights(case)
    parts = np.array([clusters(FOUR, each[None])[0] for each in bonds])
    p = np.exp(log_w[bonds.sum(axis=1)]) * float(colours) ** parts
    p /= p.sum()
    transition = bond_transition(colours, log_w)
    assert np.abs(transition.sum(axis=1) - 1)[p > 0].max() < ROUNDING
    flow = p[:, None] * transition
    assert np.abs(flow - flow.T).max() < ROUNDING
    rng = np.random.default_rng(4)
    for row in (5, 31):
        if p[row] == 0:
            continue
        new, number, _ = weighted_bond_step(FOUR, np.repeat(bonds[[row]], 10_000, 0), colours,
                                            log_w, rng)  # fmt: skip
        assert np.array_equal(new.sum(axis=1), number)
        check_counts(counted(new.astype(np.int16), 2), transition[row])


def test_weights_of_a_floor() -> None:
    log_w = floor_log_weights(Floor(np.array([2.0]), np.array([0.35])), 4)[0]
    assert np.exp(log_w) == pytest.approx([0, 0, 0.65, 1, 1])


def test_bonds_are_placed_uniformly() -> None:
    rng = np.random.default_rng(6)
    same = np.repeat([[True, False, True, True, False]], 12_000, axis=0)
    number = np.resize([0, 1, 2, 3], 12_000)
    bonds = place_bonds(same, number, rng)
    assert np.array_equal(bonds.sum(axis=1), number)
    assert not bonds[:, [1, 4]].any()
    for k in (1, 2):
        check_counts(bonds[number == k][:, [0, 2, 3]].sum(axis=0).astype(float), np.ones(3))


# Gibbs above a floor


@pytest.mark.parametrize("colours", [2, 3])
def test_gibbs_above_a_floor(colours: int) -> None:
    """Which colours a node may take, for each number that it must keep, against the definition."""
    states = all_states(4, colours)
    agree = agreeing(FOUR, states).sum(axis=1)
    for lowest in (1, 2, 3):
        inside = agree >= lowest
        for members, neighbours, _ in FOUR.groups:
            near = neighbour_colours(FOUR, states, neighbours)
            allowed = eligible(near)
            for place, node in enumerate(members):
                for k in np.flatnonzero(inside):
                    now = int((near[:, k, place] == states[k, node]).sum())
                    keep = now - (agree[k] - lowest)
                    same = np.all(np.delete(states == states[k], node, axis=1), axis=1) & inside
                    expected = sorted(states[same, node].tolist())
                    if keep <= 0:
                        assert expected == list(range(colours))
                    else:
                        standing = near[allowed[keep - 1, :, k, place], k, place]
                        assert sorted(standing.tolist()) == expected  # each colour once


@pytest.mark.parametrize("colours", [2, 3])
def test_sweeps_above_a_floor_draw_from_the_prior_above_it(colours: int) -> None:
    rng = np.random.default_rng(7)
    states = all_states(4, colours)
    agree = agreeing(FOUR, states).sum(axis=1)
    floor, key = 1.0, 0.3
    p = (agree > floor) + (1 - key) * (agree == floor)
    # From draws of the law itself: they remain draws of it.
    row = rng.choice(len(states), 30_000, p=p / p.sum())
    moved, number = states[row].copy(), agree[row].copy()
    above = Floor(np.full(len(row), floor), np.full(len(row), key))
    for _ in range(3):
        floor_sweep(FOUR, moved, number, colours, above, rng)
        assert np.array_equal(number, agreeing(FOUR, moved).sum(axis=1))
    check_counts(counted(moved, colours), p)
    # From one state only: they become draws of it.
    moved = np.zeros((20_000, 4), dtype=np.int16)
    number = np.full(20_000, 5)
    for _ in range(30):
        floor_sweep(FOUR, moved, number, colours, Floor(np.ones(20_000), np.full(20_000, key)), rng)
    check_counts(counted(moved, colours), p)


def test_the_key_is_drawn_given_the_number() -> None:
    floor = Floor(np.full(20_000, 2.0), np.full(20_000, 0.3))
    rng = np.random.default_rng(9)
    assert np.all(lowest_number(np.full(20_000, 2), floor, rng) == 2)
    lowest = lowest_number(np.full(20_000, 3), floor, rng)
    check_counts(np.bincount(lowest - 2).astype(float), np.array([0.7, 0.3]))


# Nested sampling


SMALL = torus(3, 4)
COUPLINGS = (0.75, 1.0, 1.5)


@cache
def small_runs(kind: Kind, colours: int) -> tuple[LatticeNested, ...]:
    settings = LatticeNesting(particles=24, batch=6, updates=8, populations=40, burn=60)
    seed = {"states": 11, "bonds": 12}[kind] + colours
    return nested_lattice(kind, SMALL, colours, 1.5, settings, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["states", "bonds"])
@pytest.mark.parametrize("colours", [2, 3])
def test_nested_sampling_against_enumeration(kind: Kind, colours: int) -> None:
    """Log Z of 40 populations at three couplings: scores of mean 0 and of size 1.

    The mean of 40 scores has a standard deviation of 0.16, their standard deviation one of 0.11;
    bounds are 4 of these, and a little for log Z of few particles, which is biased by -H / 2N.
    """
    prior = enumerated_log_z(SMALL, colours, float(np.log(2)))
    log_prior = log_z_of_prior(LogEvidence(prior, 0.0), SMALL) if kind == "bonds" else None
    for coupling in COUPLINGS:
        exact = enumerated_log_z(SMALL, colours, coupling)
        found = [
            run.log_z(coupling, np.random.default_rng(k), log_prior=log_prior, paths=100)
            for k, run in enumerate(small_runs(kind, colours))
        ]
        value, error = np.array(found).T
        score = (value - exact) / error
        assert abs(score.mean()) < 4 * 0.16
        assert 1 - 4 * 0.11 < score.std() < 1 + 4 * 0.11


def test_what_a_nested_run_says() -> None:
    run = small_runs("states", 2)[0]
    assert np.all(np.diff(run.count) >= 0)
    assert np.all(np.diff(run.log_volume) < 0)
    # Seen states have the numbers that are told of them.
    assert np.array_equal(agreeing(SMALL, run.seen).sum(axis=1), run.seen_count)
    states = all_states(12, 2)
    p = np.exp(log_weight(SMALL, states, 1.0))
    mean = float(p @ agreeing(SMALL, states).mean(axis=1) / p.sum())
    shares = [each.mean_share(1.0, np.random.default_rng(1)) for each in small_runs("states", 2)]
    assert np.mean(shares) == pytest.approx(mean, abs=4 * np.std(shares) / np.sqrt(40))
    information = [r.information(1.0, np.random.default_rng(1)) for r in small_runs("states", 2)]
    exact = float(p @ np.log(p * len(p) / p.sum()) / p.sum())
    assert np.mean(information) == pytest.approx(exact, abs=4 * np.std(information) / np.sqrt(40))


def test_starting_at_the_deleted_particle_fails() -> None:
    """The control: the clone of a deleted particle has too few updates to leave the floor.

    Its log Z lies off by far more than clones of survivors allow, with the same settings.
    """
    graph, exact = torus(6, 6), kaufman_log_z(6, 6, 1.0)
    score = {}
    for start in ("survivor", "deleted"):
        settings = LatticeNesting(particles=20, batch=5, updates=2, populations=20, start=start)
        runs = nested_lattice("states", graph, 2, 1.0, settings, np.random.default_rng(2))
        found = np.array([run.log_z(1.0, np.random.default_rng(1), paths=50) for run in runs])
        score[start] = (found[:, 0].mean() - exact) / found[:, 0].std() * np.sqrt(20)
    assert abs(score["survivor"]) < 4
    assert abs(score["deleted"]) > 10


def test_settings_of_nested_sampling() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(DataError, match="keeps one"):
        LatticeNesting(particles=10, batch=10)
    with pytest.raises(DataError, match="log 2"):
        nested_lattice("bonds", SMALL, 2, 0.6, LatticeNesting(), rng)
    with pytest.raises(DataError, match="above 0"):
        nested_lattice("states", SMALL, 2, 0.0, LatticeNesting(10, 5, 1), rng)
    with pytest.raises(DataError, match="log_z_of_prior"):
        small_runs("bonds", 2)[0].log_z(1.0, rng)


# Annealing


def test_annealing_is_unbiased_by_enumeration() -> None:
    """E[w] = Z_P / q^n over every path of Gibbs updates of one node, for too short a ladder."""
    states, ladder = all_states(4, 2), (0.0, 0.7, 1.9, 2.5)
    node = FOUR.groups[0].members[0]
    agree = agreeing(FOUR, states).sum(axis=1) - FOUR.size
    mean = np.full(16, 1 / 16.0)
    for k in range(3):
        mean = mean * np.exp((ladder[k + 1] - ladder[k]) * agree)
        if k < 2:
            p = potts(2, ladder[k + 1])
            same = np.array(
                [(np.delete(states, node, 1) == np.delete(s, node)).all(axis=1) for s in states]
            )
            mean = mean @ (same * p / (same @ p)[:, None])
    assert np.log(mean.sum()) + 4 * np.log(2) == pytest.approx(
        enumerated_log_z(FOUR, 2, 2.5), abs=1e-12
    )


@pytest.mark.parametrize("kernel", ["gibbs", "swendsen_wang"])
@pytest.mark.parametrize("colours", [2, 3])
def test_annealing_against_enumeration(kernel: Kernel, colours: int) -> None:
    """Within 4 of its errors, and its errors are not vast."""
    found = annealed_lattice(
        SMALL, colours, np.linspace(0, 1.5, 12), 4000, kernel, np.random.default_rng(3)
    )
    exact = enumerated_log_z(SMALL, colours, 1.5)
    assert abs(found.log_z.value - exact) < 4 * found.log_z.mcse
    assert found.log_z.mcse < 0.2
    # One step is importance sampling from uniform states.
    plain = annealed_lattice(SMALL, 2, [0.0, 0.4], 4000, kernel, np.random.default_rng(3))
    assert plain.log_weight == pytest.approx(log_weight(SMALL, plain.states, 0.4))
    with pytest.raises(DataError, match="ascend from 0"):
        annealed_lattice(SMALL, 2, [0.1, 0.4], 4, kernel, np.random.default_rng(3))


# Acceptance ratio


def test_bridges_between_couplings() -> None:
    """Within 4 errors, where that of five groups has 4 degrees of freedom: t at 1e-4, 13."""
    exact = [enumerated_log_z(SMALL, 3, coupling) for coupling in (0.7, 1.4)]
    settings = BondBridges(groups=5, chains=10, burn=20, draws=100)
    found = bridged_log_z(SMALL, 3, np.linspace(0.7, 1.4, 6), LogEvidence(exact[0], 0.0), settings,
                          np.random.default_rng(4))  # fmt: skip
    assert abs(found.value - exact[1]) < stats.t.isf(5e-5, 4) * found.mcse
    assert found.mcse < 0.1
    with pytest.raises(DataError, match="above 0"):
        bridged_log_z(SMALL, 3, [0.0, 1.0], LogEvidence(0, 0), settings, np.random.default_rng(4))
    with pytest.raises(DataError, match="2 groups"):
        BondBridges(groups=1)
