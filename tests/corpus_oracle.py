"""Reference log densities of the programs in ``tests/corpus``, made from each by its own marks.

Somebody who knows the model has marked, at the end of its line, every statement that gives data
their density with ``// likelihood``; what is not marked belongs to the prior.  A mark may say what
the statement is with its constants kept, ``// likelihood = target += ...;``, as for a truncation,
and of one that is both, what of it is prior, ``// likelihood = ...; // prior = ...;``.
From these the reference program is edited here: no statement is looked at by what it says.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from corpus_data import corpus_data
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.engine.stanli_package import stan_model

CORPUS = Path(__file__).parent / "corpus"

NUM = 5
"""Number of pseudo-samples: as many iterations as stanli's faulty passes need to be at work."""

COMPILED_ONLY = frozenset(
    {"complex_signal", "cormack_jolly_seber", "hmm_built_in", "jacobian_adjustment"}
    | {"markov_rows", "reduce_sum_poisson", "tuple_parameters"}
)
"""What stanli cannot evaluate, so that only CmdStan checks it."""

AMBIGUOUS = frozenset(
    {"lp_with_prior_and_likelihood", "mixed_observed_and_missing", "prior_and_likelihood_in_one"}
)
"""Programs with a statement that is prior and likelihood at once: they may be refused."""

_MARK = re.compile(r"\s*// (likelihood|prior|temper: no)(?: = (.*?))?(?: // prior = (.*))?$")
_TILDE = re.compile(r"^(?P<left>[^;]+?) ~ (?P<name>\w+)\((?P<arguments>.*)\);$")
_MASSES = re.compile(
    r"bernoulli|binomial|neg_binomial|poisson|multinomial|categorical|ordered_l|ordered_p|zip"
)
_PREFIX = re.compile(r"^\s*(?:(?:for|if|while) \([^~]*?\)\s+)?(?=[\w(])")

Values = dict[str, FloatArray]
"""Values of parameters by name, with a first axis over points."""


def source(name: str) -> str:
    """Text of a program."""
    return (CORPUS / f"{name}.stan").read_text(encoding="utf-8")


def marked_lines(name: str) -> list[tuple[int, str]]:
    """Number (from 1) and text of each line with a likelihood statement."""
    lines = enumerate(source(name).splitlines(), start=1)
    return [
        (number, _MARK.sub("", line).strip()) for number, line in lines if "// likelihood" in line
    ]


def with_constants(statement: str) -> str:
    """Write a statement so that Stan drops no constant from it."""
    statement = re.sub(r"_lu(p[dm]f)\b", r"_l\1", statement)
    prefix = _PREFIX.match(statement)
    start = prefix.end() if prefix else 0
    found = _TILDE.match(statement[start:])
    if found is None:
        return statement
    kind = "lpmf" if _MASSES.match(found["name"]) else "lpdf"
    given = f" | {found['arguments']}" if found["arguments"] else ""
    return f"{statement[:start]}target += {found['name']}_{kind}({found['left']}{given});"


def reference_program(name: str) -> str:
    """Return the program with all its constants, and a switch ``with_likelihood`` in its data."""
    lines = []
    for line in source(name).split("\ngenerated quantities {")[0].splitlines():
        mark = _MARK.search(line)
        code = _MARK.sub("", line)
        kept = mark[2] if mark and mark[2] else with_constants(code)
        switched = mark is not None and mark[1] == "likelihood"
        prior = mark[3] or "" if mark else ""
        lines.append(f"if (with_likelihood) {{ {kept} }} {prior}" if switched else kept)
    text = "\n".join(lines) + "\n"
    switch = "int<lower=0, upper=1> with_likelihood;\n"
    if re.search(r"^data \{", text, re.M):
        return text.replace(
            "\ndata {\n" if "\ndata {" in text else "data {\n", f"\ndata {{\n{switch}", 1
        )
    return text.replace("parameters {", f"data {{\n{switch}}}\nparameters {{", 1)


def bare_program(name: str) -> str:
    """Return the program without its statements: its log density is that of the Jacobians."""
    text = source(name)
    block = "\ntransformed parameters {" if "\ntransformed parameters {" in text else "\nmodel {"
    start = text.index(block) if block in text else text.index("model {")
    return text[:start] + "\nmodel {\n}\n"


class Reference:
    """Log prior, log likelihood and log Jacobian of a program at points, through stanli.

    Parameters
    ----------
    name
        A program of the corpus.
    folder
        Where edited programs are written.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.data: dict[str, Any] = corpus_data(name)
        self._folder = folder

    @property
    def program(self) -> StanProgram:
        """The program as it is."""
        return StanProgram(CORPUS / f"{self.name}.stan", (CORPUS,))

    def _density(self, text: str, stem: str, **more: int) -> StanDensity:
        path = self._folder / f"{self.name}_{stem}.stan"
        path.write_text(text, encoding="utf-8")
        return StanDensity(StanProgram(path, (CORPUS,)), self.data | more)

    @cached_property
    def prior(self) -> StanDensity:
        """Log prior density, Jacobian and all constants included."""
        return self._density(reference_program(self.name), "reference", with_likelihood=0)

    @cached_property
    def joint(self) -> StanDensity:
        """Log of prior density times likelihood, Jacobian and all constants included."""
        return self._density(reference_program(self.name), "reference", with_likelihood=1)

    @cached_property
    def jacobian(self) -> StanDensity:
        """Log Jacobian of Stan's map from the unconstrained space."""
        return self._density(bare_program(self.name), "bare")

    @cached_property
    def original(self) -> StanDensity:
        """The program itself: constants as Stan drops them."""
        return StanDensity(self.program, self.data)

    @property
    def dimension(self) -> int:
        """Number of unconstrained parameters."""
        return self.original.dimension

    def points(self, names: tuple[str, ...], count: int, seed: int) -> Values:
        """Return random points where the density is finite, by name, each (count, *shape).

        They are where Stan would start its chains: each unconstrained parameter is uniform
        between -2 and 2.
        """
        starts = stan_model(self.program, self.data).sample(
            chains=count,
            seed=seed,
            warmup=0,
            samples=1,
            adapt_engaged=False,
            step_size=1e-300,
            max_depth=1,
            parallel_chains=1,
            refresh=0,
        )
        return {name: np.asarray(starts.draws(name))[:, 0] for name in names}

    def free(self, values: Values) -> Values:
        """Return the same points on the unconstrained space, where each size is as constrained."""
        each = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        u = np.array([self.original.unconstrain(point) for point in each])
        sizes = [value[0].size for value in values.values()]
        if sum(sizes) != u.shape[1]:
            return {}
        parts = np.split(u, np.cumsum(sizes)[:-1], axis=1)
        return {
            name: part.reshape(value.shape)
            for (name, value), part in zip(values.items(), parts, strict=True)
        }

    def at(self, density: StanDensity, values: Values) -> FloatArray:
        """Log densities (count,) at points."""
        each = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        return np.array([density.value(self.original.unconstrain(point)) for point in each])
