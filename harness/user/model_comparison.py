"""Compare models by their evidence, and beside it by how well they predict left-out data."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness import evidence
from harness.diagnosis import Severity
from harness.engine.program import StanProgram
from harness.engine.stanc import Declared, declarations
from harness.engine.toolchain import require_stanc
from harness.errors import DataError
from harness.evidence import BayesFactor, LogEvidence, ModelOdds
from harness.forms.common import Engine
from harness.progress import say
from harness.seeds import derived_seeds
from harness.user.data import read_data
from harness.user.evidence_result import GivenEvidence
from harness.user.given_evidence import Temper, evidence_from_fit
from harness.user.leave_one_out import LeaveOneOut, leave_one_out
from harness.user.scout import BUDGET

SOURCE = (
    "Kass and Raftery (1995), Bayes factors, Journal of the American Statistical Association 90"
)
"""Source of the words for the strength of evidence."""
TWO_QUESTIONS = (
    "The evidence says how well a model with its prior predicted all these data before any of "
    "them were seen, so the prior matters to it however many data there are; leave-one-out "
    "cross-validation (elpd) says how well the fitted model predicts one more observation given "
    "the others, and the more data there are, the less the prior matters to that."
)
"""How the two columns of the table differ."""
COLUMNS = (
    *("variable", "value", "model", "log_evidence", "mcse", "method", "prior_probability"),
    *("probability", "probability_low", "probability_high", "probability_best"),
    *("log_bayes_factor", "log_bayes_factor_low", "log_bayes_factor_high", "strength"),
    *("elpd_loo", "elpd_loo_se", "elpd_difference", "elpd_difference_se", "unreliable_k"),
    *("warnings", "refused"),
)
"""Columns of the table as CSV; Bayes factors and elpd are differences from the best model."""


@dataclass(frozen=True)
class ComparedModel:
    """A model in a comparison.

    Attributes
    ----------
    name
        Its name.
    path
        Its program.
    evidence
        Its log evidence, or why there is none.
    loo
        Leave-one-out cross-validation; None if its program has no ``log_lik``.
    """

    name: str
    path: Path
    evidence: GivenEvidence
    loo: LeaveOneOut | None

    @property
    def warnings(self) -> list[str]:
        """Sentences of the warnings about its log evidence."""
        return [e.sentence for e in self.evidence.findings if e.severity > Severity.FINE]


@dataclass(frozen=True)
class ModelComparison:
    """Models with the same data.

    Attributes
    ----------
    models
        In the order in which they were given.
    prior
        Prior odds of the models.
    setting
        The data variable that was changed, with its value; None if nothing was.
    """

    models: tuple[ComparedModel, ...]
    prior: tuple[float, ...]
    setting: tuple[str, float] | None = None

    @property
    def known(self) -> list[int]:
        """Which models have a log evidence."""
        return [i for i, each in enumerate(self.models) if each.evidence.log_evidence is not None]

    def log_evidence(self, index: int) -> LogEvidence:
        """Log evidence of a model that has one."""
        found = self.models[index].evidence.log_evidence
        if found is None:
            raise DataError(f"{self.models[index].name} has no log evidence")
        return found

    @property
    def odds(self) -> ModelOdds | None:
        """Probabilities of the models; None if one of them has no log evidence."""
        if len(self.known) < len(self.models):
            return None
        return evidence.model_odds(
            [self.log_evidence(i) for i in range(len(self.models))], self.prior
        )

    @property
    def best(self) -> int | None:
        """The model with the largest log evidence; None if none has one."""
        return max(self.known, key=lambda i: self.log_evidence(i).value, default=None)

    @property
    def best_predicting(self) -> int | None:
        """The model with the largest elpd; None if none has one."""
        known = [i for i, each in enumerate(self.models) if each.loo is not None]
        return max(known, key=self._elpd, default=None)

    def _elpd(self, index: int) -> float:
        loo = self.models[index].loo
        return -math.inf if loo is None else loo.elpd

    def factor(self, one: int, other: int) -> BayesFactor:
        """Bayes factor of one model against another."""
        return evidence.bayes_factor(self.log_evidence(one), self.log_evidence(other))

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of models that have log evidences, the better one first, the largest first."""
        order = sorted(self.known, key=lambda i: -self.log_evidence(i).value)
        return [(one, other) for k, one in enumerate(order) for other in order[k + 1 :]]

    def rows(self) -> list[dict[str, Any]]:
        """Return the table, a row for each model, by the names of :data:`COLUMNS`."""
        odds, best, predicting = self.odds, self.best, self.best_predicting
        prior = np.asarray(self.prior) / np.sum(self.prior)
        rows: list[dict[str, Any]] = []
        for index, each in enumerate(self.models):
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            if self.setting is not None:
                row["variable"], row["value"] = self.setting
            row |= {
                "model": each.name,
                "method": each.evidence.method,
                "prior_probability": float(prior[index]),
                "warnings": len(each.warnings),
                "refused": "; ".join(each.evidence.refusals),
            }
            if index in self.known and best is not None:
                factor = self.factor(index, best)
                row["log_evidence"], row["mcse"] = self.log_evidence(index)
                if index != best:
                    row["log_bayes_factor"] = factor.log.value
                    row["log_bayes_factor_low"], row["log_bayes_factor_high"] = factor.interval
                    row["strength"] = f"{factor.words} against it"
            if odds is not None:
                share = odds.posterior[index]
                row["probability"] = share.value
                row["probability_low"], row["probability_high"] = share.low, share.high
                row["probability_best"] = odds.best[index]
            if each.loo is not None and predicting is not None:
                row["elpd_loo"], row["elpd_loo_se"] = each.loo.elpd, each.loo.se
                row["unreliable_k"] = each.loo.unreliable
                ahead = self.models[predicting].loo
                if index != predicting and ahead is not None:
                    row["elpd_difference"], row["elpd_difference_se"] = each.loo.minus(ahead)
            rows.append(row)
        return rows


@dataclass(frozen=True)
class ModelComparisons:
    """A comparison of models, and the same for other values of a data variable.

    Attributes
    ----------
    main
        With the data as they are.
    sensitivity
        With each of the values; empty if none were asked for.
    """

    main: ModelComparison
    sensitivity: tuple[ModelComparison, ...] = field(default=())

    @property
    def all(self) -> tuple[ModelComparison, ...]:
        """The main comparison and the others."""
        return (self.main, *self.sensitivity)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; NaN and infinite numbers become None."""
        main = self.main
        return {
            "models": [_plain(row) for row in main.rows()],
            "bayes_factors": [_factor(main, one, other) for one, other in main.pairs()],
            "strength_from": SOURCE,
            "interval": evidence.LEVEL,
            "evidences": {each.name: each.evidence.as_json() for each in main.models},
            "sensitivity": [_plain(row) for each in self.sensitivity for row in each.rows()],
            "how_they_differ": TWO_QUESTIONS,
        }

    def as_csv(self) -> str:
        """Return the tables as CSV with a heading, those of other values below the main one."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for each in self.all:
            writer.writerows(_plain(row) for row in each.rows())
        return text.getvalue()

    def as_text(self) -> str:
        """Return tables and what they mean, for people."""
        main = self.main
        lines = [*_lines(main), ""]
        for one, other in main.pairs():
            lines.append(f"{_sentence(main, one, other)}.")
        if main.pairs():
            lines.append(f"Strength of evidence in the words of {SOURCE}.")
        if any(each.loo is not None for each in main.models):
            lines += ["", TWO_QUESTIONS]
        lines += _about(main)
        for each in self.sensitivity:
            if each.setting is not None:
                lines += ["", f"{each.setting[0]} = {each.setting[1]:g}", *_lines(each)]
                lines += _about(each)
        return "\n".join(lines)


def compare_models(
    models: Sequence[Path | str],
    data: Path | str | Mapping[str, Any] | None = None,
    *,
    prior_odds: Sequence[float] | None = None,
    sensitivity: tuple[str, Sequence[float]] | None = None,
    temper: Temper = "auto",
    seed: int = 1,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    include_paths: Iterable[Path] = (),
    engine: Engine = "auto",
    budget: float = BUDGET,
    progress: bool = True,
) -> ModelComparisons:
    """Sample models with the same data, and compare their log evidences.

    Each log evidence comes from a bridge, or from a tempered run where the bridge is refused; see
    :func:`harness.user.evidence_from_fit`.

    Parameters
    ----------
    models
        Two programs or more.
    data
        JSON file, or the data by name, for all of them.
    prior_odds
        Prior odds of the models, in any unit; equal ones if not given.
    sensitivity
        A data variable and values for each of which the comparison is repeated.
    temper
        ``no`` leaves out models whose bridge is refused.
    seed, chains, warmup, draws, include_paths, engine, budget, progress
        As of :func:`harness.user.evidence_from_fit`; each model's seed is derived from the seed.

    Raises
    ------
    DataError
        If there are fewer than two models or one is given twice, odds or values do not fit, or no
        program declares the variable.
    HarnessError
        As :func:`harness.user.evidence_from_fit`.
    """
    paths, folders = [Path(each) for each in models], tuple(include_paths)
    if len(paths) < 2:
        raise DataError(f"a comparison needs two models or more; got {len(paths)}")
    names = _names(paths)
    prior = (1.0,) * len(paths) if prior_odds is None else tuple(map(float, prior_odds))
    if len(prior) != len(paths):
        raise DataError(f"{len(paths)} models need as many prior odds; got {len(prior)}")
    if not all(math.isfinite(each) and each > 0 for each in prior):
        raise DataError("prior odds must be positive numbers")
    given, where = read_data(data)
    inputs = [
        declarations(StanProgram(path, (*folders, path.parent)), require_stanc())["inputs"]
        for path in paths
    ]
    declaring = [False] * len(paths)
    if sensitivity is not None:
        declaring = _declaring(sensitivity[0], paths, inputs)
        _check_values(sensitivity, given, where)
    seeds = derived_seeds(len(paths), seed, 31)

    def one(index: int, changed: Mapping[str, Any]) -> ComparedModel:
        if progress:
            told = "".join(f", {name} = {value:g}" for name, value in changed.items())
            say(f"{names[index]} ({index + 1} of {len(paths)}{told})")
        found = evidence_from_fit(
            None,
            paths[index],
            {**given, **changed} if given or changed else None,
            temper=temper,
            seed=seeds[index],
            chains=chains,
            warmup=warmup,
            draws=draws,
            include_paths=folders,
            engine=engine,
            budget=budget,
            progress=progress,
        )
        return ComparedModel(names[index], paths[index], found, _left_out(found))

    main = ModelComparison(tuple(one(i, {}) for i in range(len(paths))), prior)
    others = []
    name, values = ("", ()) if sensitivity is None else sensitivity
    for value in values:
        if name in given and np.array_equal(given[name], value):
            compared = main.models
        else:
            changed = {name: _like(given.get(name), value)}
            compared = tuple(
                one(i, changed) if declaring[i] else main.models[i] for i in range(len(paths))
            )
        others.append(ModelComparison(compared, prior, (name, float(value))))
    return ModelComparisons(main, tuple(others))


def _left_out(found: GivenEvidence) -> LeaveOneOut | None:
    """Return PSIS-LOO from the draws that can be relied on; None if there are none."""
    if found.tempered is not None:
        return leave_one_out(found.tempered.fit)
    if found.fit is None or (found.refusals and not found.improper):
        return None
    return leave_one_out(found.fit.fit)


def _names(paths: Sequence[Path]) -> list[str]:
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise DataError(f"{name} is given twice: a comparison needs different models")
    return names


def _declaring(
    name: str, paths: Sequence[Path], inputs: Sequence[Mapping[str, Declared]]
) -> list[bool]:
    """Return which programs declare a data variable; it must be a number in all of them."""
    for path, declared in zip(paths, inputs, strict=True):
        each = declared.get(name)
        if each is not None and (each.dimensions or each.type not in ("int", "real")):
            raise DataError(f"{path} declares {name} as {each}; it must be one number")
    found = [name in declared for declared in inputs]
    if not any(found):
        raise DataError(f"none of the programs declares the data variable {name}")
    return found


def _check_values(
    sensitivity: tuple[str, Sequence[float]], given: Mapping[str, Any], where: str
) -> None:
    name, values = sensitivity
    if not values:
        raise DataError(f"give values of {name}, for example {name}=1,2,5")
    if len(set(values)) < len(values):
        raise DataError(f"a value of {name} is given twice")
    if not all(math.isfinite(value) for value in values):
        raise DataError(f"values of {name} must be finite")
    if name not in given:
        raise DataError(f"{where} has no {name}: give it the value of the main comparison")


def _like(value: Any, changed: float) -> Any:
    """Return a value as an integer if the data have an integer there and it is one."""
    whole = isinstance(value, int | np.integer) and float(changed).is_integer()
    return int(changed) if whole else float(changed)


# Text


def _lines(compared: ModelComparison) -> list[str]:
    """Return a comparison's table as lines."""
    head = ("log Z", "error", "probability", "interval", "best", "elpd_loo", "s.e.", "by")
    width = max([5, *(len(each.name) for each in compared.models)])
    table = [cells(row) for row in compared.rows()]
    widths = [
        max(len(name), *(len(row[k]) for row in table)) + 2 for k, name in enumerate(head[:-1])
    ]
    lines = [
        " " * width
        + "".join(f"{name:>{w}}" for name, w in zip(head, widths, strict=False))
        + f"  {head[-1]}"
    ]
    for each, row in zip(compared.models, table, strict=True):
        numbers = "".join(f"{text:>{w}}" for text, w in zip(row, widths, strict=False))
        lines.append(f"{each.name:<{width}}{numbers}  {row[-1]}")
    return lines


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return log Z, error, probability, interval, best, elpd, its error and method as text."""
    interval = "–"
    if row["probability"] is not None:
        interval = f"{row['probability_low']:.3g} to {row['probability_high']:.3g}"
    return [
        _shown(row["log_evidence"], ".3f"),
        _shown(row["mcse"], ".3f"),
        _shown(row["probability"], ".3g"),
        interval,
        _shown(row["probability_best"], ".3g"),
        _shown(row["elpd_loo"], ".1f"),
        _shown(row["elpd_loo_se"], ".1f"),
        row["method"] if row["log_evidence"] is not None else "refused",
    ]


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None or not math.isfinite(value) else format(value, form)


def _sentence(compared: ModelComparison, one: int, other: int) -> str:
    """Say a Bayes factor in words."""
    found = compared.factor(one, other)
    return (
        f"{compared.models[one].name} over {compared.models[other].name}: log Bayes factor "
        f"{found.log.text}, Bayes factor "
        f"{factor_text(found.log.value)} ({factor_text(found.interval[0])} to "
        f"{factor_text(found.interval[1])}); the evidence is {found.words}"
    )


def factor_text(log_factor: float) -> str:
    """Write a Bayes factor given its logarithm; very large ones as a power of e."""
    if abs(log_factor) > 300:
        return f"exp({log_factor:.1f})"
    factor = math.exp(log_factor)
    return f"{factor:,.0f}" if 1000 <= factor < 1e6 else f"{factor:.3g}"


def _about(compared: ModelComparison) -> list[str]:
    """Say what there is to know about single models, and about those without log Z."""
    lines = []
    for each in compared.models:
        for reason in each.evidence.refusals:
            lines.append(f"{each.name}: the bridge was refused: {reason}.")
        lines += [f"{each.name}: WARNING {sentence}" for sentence in each.warnings]
        if each.loo is not None and each.loo.unreliable:
            lines.append(
                f"{each.name}: elpd_loo is not reliable for {each.loo.unreliable} observations "
                "(Pareto k)."
            )
    if compared.odds is None:
        lines.append(
            "There are no probabilities of the models, because one of them has no log evidence."
        )
    return ["", *lines] if lines else []


def _factor(compared: ModelComparison, one: int, other: int) -> dict[str, Any]:
    found = compared.factor(one, other)
    return {
        "model": compared.models[one].name,
        "against": compared.models[other].name,
        "log": _finite(found.log.value),
        "mcse": _finite(found.log.mcse),
        "low": _finite(found.interval[0]),
        "high": _finite(found.interval[1]),
        "strength": found.words,
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _finite(value) if isinstance(value, float) else value for name, value in row.items()
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
