"""The methods of the experiment, each a run of `harness.lattice` that becomes a fit.

The draws of a fit are shares of agreeing edges, and its log evidence is log Z_P.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from harness.arrays import FloatArray
from harness.evidence import LogEvidence, effective_number, resample
from harness.fit import Fit, build_fit, evidence_attributes
from harness.forms.method import python_method
from harness.lattice.acceptance_ratio import BondBridges, bridged_log_z
from harness.lattice.annealing import Kernel, annealed_lattice
from harness.lattice.graph import Graph
from harness.lattice.nested import Kind, LatticeNesting, log_z_of_prior, nested_lattice
from harness.lattice.potts import States, agreeing, uniform_states
from harness.lattice.swendsen_wang import swendsen_wang_step
from harness.model import Model
from harness.samplers.ladders import geometric_ladder

from .lattices import CRITICAL, MIXED, log_z_at_low_temperature, parts_of

LOWEST = 1e-3
"""First step of the geometric ladder, as a share of J; the thesis does not print it."""
EASY = math.log(2)
"""J up to which annealing finds Z_pi of the bonds."""
FAR = 6.0
"""J from which bridges come down."""


def _fit(
    model: Model,
    method: str,
    share: FloatArray,
    began: float,
    seed: int,
    settings: Mapping[str, Any],
    log_z: LogEvidence | None,
    found: Mapping[str, Any],
) -> Fit:
    """Return a fit of shares of agreeing edges, (chains, draws)."""
    none = np.zeros(len(share))
    return build_fit(
        posterior={"agreeing": share},
        extended=None,
        sample_stats={"lp": np.zeros(share.shape)},
        constant_data=model.data,
        attrs={
            "method": method,
            "engine": "NumPy",
            "model": model.name,
            "program": model.name,
            "settings": dict(settings),
            "seed": seed,
            "gradients_warmup": none,
            "gradients_sampling": none,
            "densities": 0,
            "seconds_warmup": none,
            "seconds_sampling": none + (time.process_time() - began) / len(share),
            "harness_version": version("harness"),
        }
        | evidence_attributes(log_z)
        | dict(found),
    )


def _share(graph: Graph, states: States) -> FloatArray:
    mean: FloatArray = agreeing(graph, states).mean(axis=1)
    return mean


def anneal(
    model: Model, *, kernel: Kernel, runs: int, couplings: int, spacing: str, seed: int
) -> Fit:
    """Anneal from J = 0; ``ends`` are the unweighted shares in which the runs end."""
    graph, colours, coupling = parts_of(model)
    began, rng = time.process_time(), np.random.default_rng(seed)
    geometric = spacing == "geometric"
    ladder = (
        geometric_ladder(couplings, lowest=LOWEST) if geometric else np.linspace(0, 1, couplings)
    )
    run = annealed_lattice(graph, colours, coupling * ladder, runs, kernel, rng)
    ends = _share(graph, run.states)
    settings = {"kernel": kernel, "runs": runs, "couplings": couplings, "spacing": spacing}
    drawn = ends[resample(run.log_weight[None], rng)]
    found = {"ends": ends, "effective": float(effective_number(run.log_weight))}
    return _fit(model, "potts_annealing", drawn, began, seed, settings, run.log_z, found)


def nest(
    model: Model,
    *,
    kind: Kind,
    particles: int,
    batch: int,
    updates: int,
    start: Literal["survivor", "deleted"] = "survivor",
    easy: tuple[int, int] = (100, 1000),
    seed: int,
) -> Fit:
    """Run nested sampling; Z_pi of bonds is from annealing up to log 2, `easy` runs and couplings.

    Posterior draws are those of states: of bonds, their share over 1 - exp(-J), which has the same
    mean.
    """
    graph, colours, coupling = parts_of(model)
    began, rng = time.process_time(), np.random.default_rng(seed)
    nesting = LatticeNesting(particles=particles, batch=batch, updates=updates, start=start)
    run = nested_lattice(kind, graph, colours, coupling, nesting, rng)[0]
    log_prior = None
    if kind == "bonds":
        ladder = np.linspace(0, EASY, easy[1])
        up = annealed_lattice(graph, colours, ladder, easy[0], "swendsen_wang", rng)
        log_prior = log_z_of_prior(up.log_z, graph)
    log_z = run.log_z(coupling, rng, log_prior=log_prior)
    log_weight = run.log_weight(coupling, rng)
    drawn = run.count[resample(log_weight[None], rng)] / graph.size
    drawn = drawn[:, :: max(1, drawn.shape[1] // 2000)]
    settings = {
        "kind": kind,
        "particles": particles,
        "batch": batch,
        "updates": updates,
        "start": start,
    }
    found = {
        "information": run.information(coupling, rng),
        "removed": len(run.count),
        "log_prior": 0.0 if log_prior is None else log_prior.value,
    }
    scale = -math.expm1(-coupling) if kind == "bonds" else 1.0
    return _fit(model, "potts_nested", drawn / scale, began, seed, settings, log_z, found)


def bridge(
    model: Model,
    *,
    rungs: int,
    chains: int,
    burn: int,
    draws: int,
    down: bool,
    easy: tuple[int, int] = (100, 1000),
    seed: int,
) -> Fit:
    """Build bridges up from log 2, where annealing gives Z, or down from J = 6."""
    graph, colours, coupling = parts_of(model)
    began, rng = time.process_time(), np.random.default_rng(seed)
    if down:
        first = LogEvidence(log_z_at_low_temperature(graph, colours, FAR), 0.0)
        ladder = np.geomspace(FAR, coupling, rungs)
    else:
        steps = np.linspace(0, EASY, easy[1])
        first = annealed_lattice(graph, colours, steps, easy[0], "swendsen_wang", rng).log_z
        ladder = np.linspace(EASY, coupling, rungs)
    settings = BondBridges(chains=chains, burn=burn, draws=draws)
    log_z = bridged_log_z(graph, colours, ladder, first, settings, rng)
    kept = {"rungs": rungs, "chains": chains, "burn": burn, "draws": draws, "down": down}
    states, share = uniform_states(graph, colours, 2, rng), np.empty((2, max(draws, 4)))
    for step in range(-burn, share.shape[1]):
        states, _ = swendsen_wang_step(graph, states, colours, coupling, rng)
        share[:, max(step, 0)] = _share(graph, states)
    return _fit(model, "potts_bridges", share, began, seed, kept, log_z, {})


def both_starts(
    model: Model, *, lattices: int, sweeps: int, offsets: tuple[float, ...], seed: int
) -> Fit:
    """Run Swendsen-Wang from ordered and from disordered states at couplings about the transition.

    Attributes of the fit: ``offsets``, ``ordered`` and ``disordered``, the mean shares of bonds in
    the second half of the sweeps by coupling, and ``trace_ordered`` and ``trace_disordered``, the
    shares of the first lattice of each at the transition; ``crossed``, the share of lattices there
    that came into the middle third between the phases.
    """
    graph, colours, _ = parts_of(model)
    began, rng = time.process_time(), np.random.default_rng(seed)
    means, traces = [], np.empty((0, 0))
    for offset in offsets:
        states = uniform_states(graph, colours, 2 * lattices, rng)
        states[:lattices] = 0
        share = np.empty((2 * lattices, sweeps))
        for sweep in range(sweeps):
            states, bonds = swendsen_wang_step(graph, states, colours, CRITICAL + offset, rng)
            share[:, sweep] = bonds.mean(axis=1)
        late = share[:, sweeps // 2 :].mean(axis=1).reshape(2, -1).mean(axis=1)
        means.append(late)
        if offset == 0:
            traces = share
    # The first sweeps lead from the starts, which are neither phase.
    settled = traces[:, sweeps // 5 :]
    between = ((settled > MIXED[0]) & (settled < MIXED[1])).any(axis=1)
    ordered, disordered = np.array(means).T
    found = {
        "offsets": np.array(offsets),
        "ordered": ordered,
        "disordered": disordered,
        "trace_ordered": traces[0],
        "trace_disordered": traces[lattices],
        "crossed": float(between.mean()),
    }
    settings = {"lattices": lattices, "sweeps": sweeps, "offsets": list(offsets)}
    return _fit(model, "potts_both_starts", traces, began, seed, settings, None, found)


def passage(model: Model, *, particles: int, updates: int, seed: int) -> Fit:
    """Run nested sampling of bonds through the transition.

    Attributes of the fit: ``offsets`` and ``mean``, the mean share of bonds by coupling; ``path``,
    shares of bonds on the way up against ``volume``, log prior volumes; ``state``, the colours of
    the state that is nearest to the middle between the phases, and ``state_share``, its share.
    """
    graph, colours, coupling = parts_of(model)
    began, rng = time.process_time(), np.random.default_rng(seed)
    settings = LatticeNesting(particles=particles, batch=particles // 2, updates=updates, burn=50)
    run = nested_lattice("bonds", graph, colours, coupling, settings, rng)[0]
    offsets = np.linspace(-0.04, 0.04, 41)
    mean = [
        # The same volumes for every coupling.
        run.mean_share(CRITICAL + each, np.random.default_rng([seed, 1]), paths=20)
        for each in offsets
    ]
    seen = run.seen_count / graph.size
    nearest = int(np.argmin(np.abs(seen - np.mean(MIXED))))
    some = np.linspace(0, len(run.count) - 1, 400).astype(int)
    found = {
        "offsets": offsets,
        "mean": np.array(mean),
        "path": run.count[some] / graph.size,
        "volume": run.log_volume[some],
        "state": run.seen[nearest].astype(np.float64),
        "state_share": float(seen[nearest]),
        "mixed": int(((seen > MIXED[0]) & (seen < MIXED[1])).sum()),
    }
    kept = {"particles": particles, "updates": updates}
    return _fit(model, "potts_passage", seen[None], began, seed, kept, None, found)


ANNEALING = python_method("potts_annealing", anneal)
NESTING = python_method("potts_nested", nest)
BRIDGES = python_method("potts_bridges", bridge)
BOTH_STARTS = python_method("potts_both_starts", both_starts)
PASSAGE = python_method("potts_passage", passage)
