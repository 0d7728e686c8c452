"""What an experiment consists of: cells, tasks, claims, tables and figures, all plain data."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.fit import Fit, part_of
from harness.forms.method import Method
from harness.model import Model

Profile = Literal["smoke", "quick", "paper"]
PROFILES: tuple[Profile, ...] = get_args(Profile)

Verdict = Literal["reproduced", "not reproduced", "undecided", "not run"]

ClaimKind = Literal["paper", "ours", "against", "why"]
"""Whose a claim is: see :attr:`Claim.kind`."""


@dataclass(frozen=True)
class Cell:
    """One method with its settings on one model, run several times.

    Attributes
    ----------
    key
        Name within the experiment, for seeds and file names: lower-case letters, digits and
        hyphens.  It must not change once used.
    label
        Name for tables and figures.
    factors
        What distinguishes cells, for tables and ``--only``: scenario, method, N.
    model
        Target density with its data.
    method
        The method that is run on the model.
    settings
        Keyword arguments of the method other than the model, ``nuts`` and the seed: plain data,
        arrays, and dataclasses such as a base.
    nuts
        Settings of NUTS.
    replications
        Number of independent runs.
    models
        Model of each replication, if they differ, for example because every run has its own random
        split of the data; ``model`` is then the first of them.
    extras
        What the experiment's functions need in addition to the fit, such as held-out data; draws do
        not depend on it.
    batch
        How many of the replications run side by side in one fit, whose chains are divided equally
        among them in order.  The settings give the number of chains of the whole batch.  Small
        batches are dear, since all chains share the overhead of a step; a replication costs the
        fit's time divided by ``batch``.

    Raises
    ------
    DataError
        If models are given, but fewer than there are replications; or if batches do not divide the
        replications, or hold replications with models of their own.
    """

    key: str
    label: str
    factors: Mapping[str, Any]
    model: Model
    method: Method
    settings: Mapping[str, Any]
    nuts: NutsSettings
    replications: int
    models: tuple[Model, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1

    def __post_init__(self) -> None:
        if self.batch < 1 or self.replications % self.batch:
            raise DataError(
                f"the {self.replications} replications of {self.key} cannot be run in batches of "
                f"{self.batch}"
            )
        if self.batch > 1 and self.models:
            raise DataError(
                f"replications of {self.key} that run in one fit share a model; give them none"
            )
        if 0 < len(self.models) < self.replications:
            raise DataError(
                f"the {self.replications} replications of {self.key} need a model each, or one for "
                f"all; got {len(self.models)}"
            )

    def model_of(self, replication: int) -> Model:
        """Return the model of a replication."""
        return self.models[replication] if self.models else self.model

    @property
    def program(self) -> StanProgram | None:
        """The Stan program that the method runs, if any."""
        return None if self.method.variant is None else self.model.program(self.method.variant)

    def content(self, replication: int = 0) -> str:
        """Return the data and settings that a replication's draws depend on, as JSON."""
        model = self.model_of(replication)
        data = {name: np.asarray(value).tolist() for name, value in model.data.items()}
        content = {
            "model": model.name,
            "data": data,
            "method": self.method.name,
            "settings": dict(self.settings),
            "nuts": self.nuts.identity(),
        }
        # Left out otherwise, so that hashes of other cells stay as they were.
        batch = {"batch": self.batch} if self.batch > 1 else {}
        return json.dumps(content | batch, sort_keys=True, default=_plain)


def _plain(setting: Any) -> Any:
    """Turn a setting that JSON does not know into plain data: an array, or a dataclass."""
    if isinstance(setting, np.ndarray):
        return setting.tolist()
    if is_dataclass(setting) and not isinstance(setting, type):
        return {"class": type(setting).__name__, **asdict(setting)}
    raise TypeError(
        f"a setting of a cell must be plain data, an array or a dataclass; got {setting!r}"
    )


@dataclass(frozen=True)
class Task:
    """One fit of a cell, named by a hash of everything that its draws depend on.

    It holds one replication of the cell, or a batch of them.

    Attributes
    ----------
    experiment
        Name of the experiment.
    cell
        The cell.
    replication
        Which of its runs, from 0; of a batch, the first.
    digest
        Hash of the program's text with its includes, the data, the settings, the seed and Stan's
        version.
    """

    experiment: str
    cell: Cell
    replication: int
    digest: str

    @property
    def model(self) -> Model:
        """The model that the replication samples."""
        return self.cell.model_of(self.replication)

    @property
    def replications(self) -> range:
        """All replications that its fit holds."""
        return range(self.replication, self.replication + self.cell.batch)

    def run_of(self, fit: Fit, replication: int) -> Fit:
        """Return the chains of one of its replications as a fit of their own.

        Raises
        ------
        DataError
            If the chains cannot be divided; see :func:`harness.fit.part_of`.
        """
        return part_of(fit, replication - self.replication, self.cell.batch)

    @property
    def seed(self) -> int:
        """Seed of the run; see :func:`task_seed`."""
        return task_seed(self.experiment, self.cell.key, self.replication)

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.experiment}/{self.cell.key}/{self.replication}"


def task_seed(experiment: str, cell_key: str, replication: int) -> int:
    """Return the seed of a run, which depends only on experiment, cell and replication.

    So a grid can grow without changing the seeds of runs that it already has.
    """
    name = f"{experiment}/{cell_key}".encode()
    entropy = int.from_bytes(hashlib.sha256(name).digest()[:16])
    sequence = np.random.SeedSequence(entropy, spawn_key=(replication,))
    return int(sequence.generate_state(1, np.uint32)[0])


def tasks_of(
    experiment: str,
    cells: tuple[Cell, ...],
    program_digests: Mapping[StanProgram, str],
    stan_version: str,
) -> Iterator[Task]:
    """Return the tasks of a grid, cell by cell.

    Parameters
    ----------
    program_digests
        Hash of each program's text with its includes.
    stan_version
        Version of Stan that makes the draws.
    """
    for cell in cells:
        program = "" if cell.program is None else program_digests[cell.program]
        content = ""
        for replication in range(0, cell.replications, cell.batch):
            if replication == 0 or cell.models:
                content = cell.content(replication)
            seed = task_seed(experiment, cell.key, replication)
            whole = f"{program}\0{stan_version}\0{content}\0{seed}"
            yield Task(experiment, cell, replication, hashlib.sha256(whole.encode()).hexdigest())


@dataclass(frozen=True)
class Claim:
    """What is claimed, what we measured, and whether they agree.

    Attributes
    ----------
    key
        Short name within the experiment, by which verdicts of several runs are matched: lower-case
        letters, digits and hyphens.  It must not change once used; the statement may.
    kind
        ``"paper"``: a paper's own; ``"ours"``: further, in our favour; ``"against"``: further,
        against us or against tempering; ``"why"``: what explains a difference from a paper, or does
        not.
    statement
        What is claimed, in a sentence for people.  Of a claim that is not a paper's it begins with
        "Ours", "Against", "Why" or "Not why", for those who read no kinds.
    measured
        What we measured, in words; nothing before it is judged.
    verdict
        Whether the two agree.  ``"undecided"``: these runs are too few or too short to say, and
        ``measured`` says what would decide it; ``"not run"``: results are missing, or come from the
        smoke profile.
    """

    key: str
    kind: ClaimKind
    statement: str
    measured: str = ""
    verdict: Verdict = "not run"


@dataclass(frozen=True)
class Mark:
    """How one run went, as a symbol in an entry of a table that links to the page of its fit.

    Attributes
    ----------
    symbol
        One character, which tells marks apart without their colours.
    words
        What it means.
    tone
        Its colour on the page.
    cell, replication
        The run.
    """

    symbol: str
    words: str
    tone: Literal["good", "doubt", "told", "bad", "none"]
    cell: str
    replication: int


class Marks(tuple[Mark, ...]):
    """An entry of a table: a mark for each of several runs; as text, their numbers by meaning."""

    def __str__(self) -> str:
        counted = Counter(mark.words for mark in self)
        return ", ".join(f"{number} {words}" for words, number in counted.items())


@dataclass(frozen=True)
class Table:
    """A table for the report, also written as CSV under its name.

    Attributes
    ----------
    name
        Name of its file.
    caption
        What it shows.
    frame
        The table.  An entry may be :class:`Marks`.
    first
        Whether the page begins with it, before claims and figures.
    legend
        What its marks mean, each once; only of a table that has some.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    first: bool = False
    legend: tuple[Mark, ...] = ()

    @property
    def marks(self) -> list[Mark]:
        """All marks in its entries."""
        entries = (entry for row in self.frame.itertuples(index=False) for entry in row)
        return [mark for entry in entries if isinstance(entry, Marks) for mark in entry]


@dataclass(frozen=True)
class Figure:
    """A figure for the report, with a description for people who cannot see it.

    Attributes
    ----------
    name
        Name of its file.
    caption
        What it shows and what to look for.
    alt_text
        What it shows, for a screen reader.
    image
        SVG or PNG, made by :func:`harness.report.style.to_image`.
    """

    name: str
    caption: str
    alt_text: str
    image: bytes


@dataclass(frozen=True)
class Failure:
    """A task that failed, and why."""

    cell: str
    replication: int
    message: str


@dataclass(frozen=True)
class Results:
    """Finished fits of an experiment in one profile.

    Attributes
    ----------
    profile
        Profile of the grid.
    cells
        Cells of the grid with at least two finished replications.
    metrics
        One row per replication: ``cell``, the cell's factors, ``replication``, ``seed``,
        ``seconds``, ``gradients`` and whatever the experiment measures.
    load
        Reads the fit of a replication of a cell; of a batch, the replication's chains.
    planned
        Number of replications in the whole grid.
    failures
        Tasks that failed.
    draws
        Reads only the target's draws, arrays (chains, draws, ...) by name, which is quicker than
        reading the fit; by default the fit is read.
    finished
        When the latest of the fits was finished, in ISO 8601; "" if that is not known.
    """

    profile: Profile
    cells: tuple[Cell, ...]
    metrics: pd.DataFrame
    load: Callable[[Cell, int], Fit]
    planned: int
    failures: tuple[Failure, ...] = ()
    draws: Callable[[Cell, int], dict[str, np.ndarray]] | None = None
    finished: str = ""

    def target_draws(self, cell: Cell, replication: int) -> dict[str, np.ndarray]:
        """Return the target's draws of a cell's replication, (chains, draws, ...) by name."""
        if self.draws is not None:
            return self.draws(cell, replication)
        posterior = self.load(cell, replication).posterior
        return {
            str(name): variable.transpose("chain", "draw", ...).to_numpy()
            for name, variable in posterior.items()
        }

    def replications(self, cell: Cell) -> list[int]:
        """Return the replications of a cell that are finished."""
        rows = self.metrics.loc[self.metrics["cell"] == cell.key, "replication"]
        return [int(replication) for replication in rows]

    @property
    def complete(self) -> bool:
        """Whether every replication of the grid is finished."""
        return len(self.metrics) == self.planned


@dataclass(frozen=True)
class Experiment:
    """A published experiment: what to run, what to measure, and what to compare it with.

    Attributes
    ----------
    name, title, source
        Short name for the command line, title, and the paper's section.
    summary
        A paragraph for the report: what is done and what to look for.
    reductions
        For each profile, in what way it is smaller than the published experiment ("" if it is not).
    grid
        Cells of a profile.
    user_grid
        Cells of a profile that need the user's own files, in the folder that ``--data-dir`` names;
        None if there are no such cells.
    measure
        Metrics of one replication's fit, by name.
    measure_batch
        Further metrics of the replications of a fit that holds several, a mapping each, from the
        whole fit.
    condense
        Reduces a fit to what the experiment's functions need, before the fit is measured and kept,
        for fits with too many draws to keep.  None keeps all of a fit.
    tables, figures, claims
        What the report shows, made from finished fits; each of them copes with missing cells.
    processor_seconds
        How long a whole run of a profile takes on an empty cache, including compilation and pages,
        to within a factor of two.  The quickest experiment runs first; one without this comes last.
    on_request
        Whether it only runs when it is named, because it takes long: without names, all the others
        run.
    """

    name: str
    title: str
    source: str
    summary: str
    reductions: Mapping[Profile, str]
    grid: Callable[[Profile], tuple[Cell, ...]]
    measure: Callable[[Cell, Fit], dict[str, float]]
    tables: Callable[[Results], list[Table]]
    figures: Callable[[Results], list[Figure]]
    claims: Callable[[Results], list[Claim]]
    user_grid: Callable[[Profile, Path], tuple[Cell, ...]] | None = None
    condense: Callable[[Cell, Fit], Fit] | None = None
    measure_batch: Callable[[Cell, Fit], Sequence[Mapping[str, float]]] | None = None
    processor_seconds: Mapping[Profile, float] = field(default_factory=dict)
    on_request: bool = False
