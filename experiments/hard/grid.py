"""Targets, rows and budgets of the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.engine.compile import source_digest
from harness.engine.nuts import NutsSettings
from harness.model import Model
from harness.models.hard import TARGETS
from harness.plan.spec import Cell, Profile
from harness.temper import What
from harness.user.sample import METHODS

from .peers.installed import PEERS, is_installed
from .within import CHAINS, MOST_DRAWS, MOST_WARMUP, WITHIN

SECONDS, EVALUATIONS = "seconds", "evaluations"
"""Kinds of budget."""


@dataclass(frozen=True)
class Row:
    """A way of sampling: its key, its name in tables, and how :mod:`.within` runs it."""

    key: str
    label: str
    row: str
    options: Mapping[str, Any]


PEER_ROWS: tuple[Row, ...] = (
    # As its user gets it: ellipsoids below 10 dimensions, random walks up to 20, then slices.
    Row("dynesty", "dynesty", "dynesty", {"explorer": "auto"}),
    # Slices in random directions, whatever the dimension is.
    Row("dynesty-slices", "dynesty, slices", "dynesty", {"explorer": "rslice"}),
    Row("blackjax-smc", "blackjax, tempered SMC", "blackjax_smc", {}),
    Row("blackjax-nested", "blackjax, nested slices", "blackjax_nested", {}),
)
"""Rows of other packages, which are left out where their package is not installed."""

ROWS: tuple[Row, ...] = (
    Row("nuts", "NUTS", "user", {"method": "nuts"}),
    Row("auto", "auto", "user", {"method": "auto"}),
    Row("collapsed", "collapsed CT", "user", {"method": "collapsed_tempering"}),
    Row("joint", "joint CT", "user", {"method": "joint_tempering"}),
    *(
        Row(f"pe-{n}", f"PE N={n}", "user", {"method": "pseudo_extended", "num_pseudo_samples": n})
        for n in (2, 5)
    ),
    Row("pt-1", "PT, 1 reference", "user", {"method": "parallel_tempering", "references": 1}),
    Row("pt-2", "PT, 2 references", "user", {"method": "parallel_tempering"}),
    Row("smc", "tempered SMC", "particles", {}),
    *(
        Row("nested", "nested sampling", "user", {"method": name})
        for name in map(str, METHODS)
        if name == "nested_sampling"
    ),
    *(row for row in PEER_ROWS if is_installed(PEERS[row.row])),
)
LABELS: Mapping[str, str] = {row.key: row.label for row in ROWS}
DEPENDENT = (
    "radiata-pine-density",
    "radiata-pine-adjusted",
    "sparse-car",
    "vaccines",
)
"""Targets whose parameters depend on each other a priori, so that dynesty takes no prior of
theirs."""
IN_JAX = (
    "product",
    "radiata-pine-density",
    "radiata-pine-adjusted",
    "unequal-wells-10",
    "unequal-wells-25",
    "mrna",
    "mrna-m1a",
    "vaccines",
    "rockets",
    "galaxies",
    "sensors-8d",
)
"""Targets whose program has a density in :mod:`.peers.jax_densities`, which is not imported for
it."""


@dataclass(frozen=True)
class Size:
    """What a profile runs.

    Attributes
    ----------
    targets
        Names of targets; None for all.
    rows
        Keys of rows; None for all.
    replications
        Runs of each cell.
    seconds, evaluations
        Budgets of a run; None where there is no such cell.
    """

    targets: tuple[str, ...] | None
    rows: tuple[str, ...] | None
    replications: int
    seconds: float
    evaluations: float | None


QUICK_TARGETS = (
    "phi-four-field",
    "gaussian-mixture-40",
    "product",
    "unequal-wells-25",
)
"""One for each kind of difficulty, among those whose pilots take seconds."""
QUICK_ROWS = ("nuts", "auto", "collapsed", "joint", "pe-5", "pt-2", "smc", "nested")
"""One of each kind of method."""

SIZES: dict[Profile, Size] = {
    "smoke": Size(("radiata-pine-density", "product"), ("nuts", "pt-2"), 2, 2.0, None),
    "quick": Size(QUICK_TARGETS, QUICK_ROWS, 5, 8.0, None),
    "paper": Size(None, None, 20, 120.0, 5e6),
}


def grid(profile: Profile) -> tuple[Cell, ...]:
    """Every row on every target, within seconds and, in the paper profile, within evaluations."""
    size = SIZES[profile]
    names = TARGETS if size.targets is None else [n for n in size.targets if n in TARGETS]
    rows = [row for row in ROWS if size.rows is None or row.key in size.rows]
    return tuple(cells(names, rows, size))


def cells(names: Iterable[str], rows: Iterable[Row], size: Size) -> Iterable[Cell]:
    """Yield the cells of targets and rows, target by target."""
    rows = tuple(rows)
    for name in names:
        model = TARGETS[name]()
        digest = source_digest(model.program("target"))
        able = [row for row in rows if _is_able(row, name, model)]
        for row in able:
            yield cell(name, model, digest, row, size.replications, seconds=size.seconds)
        if size.evaluations is not None:
            for row in able:
                yield cell(
                    name, model, digest, row, size.replications, evaluations=size.evaluations
                )


def _is_able(row: Row, target: str, model: Model) -> bool:
    """Whether a row runs on a target: nested sampling and peers start from a prior."""
    if row.row in PEERS and PEERS[row.row] == "blackjax":
        return target in IN_JAX
    if row.key == "nested" or row.row in PEERS:
        return model.own_base == "prior" and (row.row not in PEERS or target not in DEPENDENT)
    return True


def what_of(model: Model) -> What:
    """Return what a user would have tempered: everything, if a program has no prior."""
    return "all" if model.own_base == "improper" else "likelihood"


def cell(
    name: str,
    model: Model,
    digest: str,
    row: Row,
    replications: int,
    *,
    seconds: float | None = None,
    evaluations: float | None = None,
) -> Cell:
    """Return a row on a target within one kind of budget."""
    kind = SECONDS if evaluations is None else EVALUATIONS
    key = f"{name}-{row.key}" + ("" if kind == SECONDS else "-evaluations")
    return Cell(
        key=key.replace("_", "-"),
        label=f"{name}, {row.label}" + ("" if kind == SECONDS else ", equal evaluations"),
        factors={"target": name, "method": row.key, "budget": kind},
        model=model,
        method=WITHIN,
        settings={
            "row": row.row,
            "options": {**row.options, "what": what_of(model)},
            "seconds": seconds,
            "evaluations": evaluations,
            "program": digest,
        },
        nuts=NutsSettings(chains=CHAINS, warmup=MOST_WARMUP, draws=MOST_DRAWS),
        replications=replications,
    )
