"""What the thesis says of its methods, and what we add, each against the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from harness.arrays import FloatArray
from harness.models.evidence_targets import QUADRANTS, elliptical_student_log_evidence
from harness.plan.claims import judged
from harness.plan.effects import Decision
from harness.plan.spec import Claim, ClaimKind, Results

from .grid import OURS, TABLE
from .tables import (
    EXPERIMENTS,
    agrees,
    answers,
    normal_scores,
    printed,
    repeated,
    shares,
    truth,
)
from .targets import (
    AS_PRINTED,
    DECEPTIVE,
    GAUSSIAN_A,
    GAUSSIAN_B,
    STUDENT,
    TWO_MODES,
)
from .volumes import PLATEAU_COUNTS, plateau_counts, volume_errors

Judge = Callable[[], tuple[str, Decision | None]]
Needs = list[tuple[str, str, str]]
"""Part, distribution and row of each."""

_EASY_NESTED: Needs = [
    (TABLE, GAUSSIAN_A, "nest-19-1"),
    (TABLE, GAUSSIAN_A, "nest-212-1"),
    (TABLE, GAUSSIAN_B, "nest-200-1"),
    (TABLE, STUDENT, "nest-10-1"),
    (TABLE, STUDENT, "nest-93-1"),
]
_OUR_ROWS = ("collapsed", "joint", "pt", "nested")
_NAMES = {
    "collapsed": "collapsed tempering",
    "joint": "joint tempering",
    "pt": "parallel tempering",
    "nested": "the library's nested sampling",
}


class _Judges:
    """Judges of the claims about one set of results."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def found(self, distribution: str, row: str, part: str = TABLE) -> FloatArray:
        """Return log Z and errors of a row's runs, (R, 2)."""
        return answers(self._results, distribution, row, part)

    def lacking(self, needs: Needs) -> set[str]:
        """Return the rows that have no runs."""
        return {f"{place}, {row}" for part, place, row in needs
                if not len(self.found(place, row, part))}  # fmt: skip

    def scores(self, distribution: str, row: str, part: str = TABLE) -> FloatArray:
        """Return errors of a row's runs in units of what they report."""
        return normal_scores(self.found(distribution, row, part), distribution)

    def nested_is_right(self) -> tuple[str, Decision | None]:
        scores = {(place, row): self.scores(place, row) for _, place, row in _EASY_NESTED}
        said = "; ".join(f"{place}, N={row.split('-')[1]}: {_list(each)}"
                         for (place, row), each in scores.items())  # fmt: skip
        return f"z of each run: {said}.", all(agrees(each) for each in scores.values())

    def one_particle(self) -> tuple[str, Decision | None]:
        one, ten = (self.scores(GAUSSIAN_A, f"nest-1-{steps}") for steps in (1, 10))
        # Negligible overlap: most runs are more than three errors away.
        overlap = [float(np.mean(np.abs(each) < 3)) for each in (one, ten)]
        theirs = [_printed_score(GAUSSIAN_A, f"nest-1-{steps}") for steps in (1, 10)]
        return (
            f"z with 1 step: {_list(one)} (published {theirs[0]:.1f}); with 10: {_list(ten)} "
            f"(published {theirs[1]:.1f}).",
            max(overlap) < 0.5,
        )

    def one_particle_fails(self) -> tuple[str, Decision | None]:
        found = self.found(GAUSSIAN_A, "nest-1-1")
        off = found[:, 0] - truth(GAUSSIAN_A)
        error = off.std(ddof=1) / np.sqrt(len(off))
        return (
            f"With 1 step log Z is too high by {off.mean():.1f} ± {error:.1f} on average over "
            f"{len(off)} runs, which report errors of {found[:, 1].mean():.1f}; mean square of z "
            f"{np.mean(np.square(off / found[:, 1])):.1f}.",
            bool(off.mean() > 2 * error and not agrees(self.scores(GAUSSIAN_A, "nest-1-1"))),
        )

    def multicanonical_b(self) -> tuple[str, Decision | None]:
        found = self.found(GAUSSIAN_B, "multi-analytic-long")
        scores = normal_scores(found, GAUSSIAN_B)
        return (
            f"Gaussian (b): log Z {_list(found[:, 0], 2)} ± {_list(found[:, 1], 2)}, z "
            f"{_list(scores)} (published 9.70 ± 0.68); nested sampling with a tenth of the "
            f"evaluations reports {self.found(GAUSSIAN_B, 'nest-200-1')[:, 1].mean():.2f}.",
            bool(not agrees(scores) or found[:, 1].min() > 0.47),
        )

    def linear_on_gaussian(self) -> tuple[str, Decision | None]:
        linear, fourth = (self.found(GAUSSIAN_A, f"ais-{s}") for s in ("linear", "fourth"))
        off = linear[:, 0] - truth(GAUSSIAN_A)
        rms = [float(np.sqrt(np.mean(np.square(each[:, 0] - truth(GAUSSIAN_A))))) for each in
               (linear, fourth)]  # fmt: skip
        return (
            f"Linear: errors of {_list(off, 2)}, reported {_list(linear[:, 1], 2)}; root mean "
            f"square {rms[0]:.2f} against {rms[1]:.2f} with fourth powers, reported errors "
            f"{linear[:, 1].mean():.2f} and {fourth[:, 1].mean():.2f}.",
            bool(rms[0] > rms[1] and linear[:, 1].mean() > 1.2 * fourth[:, 1].mean()),
        )

    def linear_on_student(self) -> tuple[str, Decision | None]:
        rows = {name: self.found(STUDENT, f"ais-{name}") for name in ("linear", "fourth", "1-100")}
        error = {name: float(found[:, 1].mean()) for name, found in rows.items()}
        return (
            f"Reported errors of log Z: linear {error['linear']:.3f}, by nested sampling "
            f"{error['1-100']:.3f}, fourth power {error['fourth']:.3f} (published 0.05, 0.05, "
            "0.08).",
            max(error["linear"], error["1-100"]) < error["fourth"],
        )

    def short_schedule(self) -> tuple[str, Decision | None]:
        found = self.found(GAUSSIAN_A, "ais-100-1")
        off = found[:, 0] - truth(GAUSSIAN_A)
        return (
            f"AIS 100,1 with about 15 rungs, for an error of 0.3: errors of {_list(off, 2)}, "
            f"reported {_list(found[:, 1], 2)} (published -2.71, reported 0.48).",
            bool(np.sqrt(np.mean(np.square(off))) > 0.6),
        )

    def plus_mode(self) -> tuple[str, Decision | None]:
        rows = shares(self._results, TWO_MODES)
        rows = rows[rows["row"] == "ais-1-1000-long"]
        ends, weighted = rows["wide, unweighted"], rows["wide"]
        score = (weighted - 1 / 3) / rows["wide, error"]
        return (
            f"Share of chains that end in the + mode: {_list(ends.to_numpy(), 3)}; by weight "
            f"{_list(weighted.to_numpy(), 2)} ± {_list(rows['wide, error'].to_numpy(), 2)}, which "
            "is 1/3 in truth.",
            bool((ends > 0.9).all() and agrees(score.to_numpy(dtype=np.float64))),
        )

    def too_sure_on_two_modes(self) -> tuple[str, Decision | None]:
        rows = ("nest-158-1", "nest-1455-1", "nest-1849-1", "nest-7000-1")
        scores = {row: self.scores(TWO_MODES, row) for row in rows}
        said = "; ".join(f"N={row.split('-')[1]}: {_list(each)}" for row, each in scores.items())
        return (
            f"z of each run: {said} (published -3.6, 6.6, -2.6, -1.7).",
            not agrees(np.concatenate(list(scores.values()))),
        )

    def deceived(self) -> tuple[str, Decision | None]:
        nested = self.scores(DECEPTIVE, "nest-16000-1")
        found = self.found(DECEPTIVE, "ais-1-1000")
        annealed = normal_scores(found, DECEPTIVE)
        return (
            f"z of nested sampling: {_list(nested)} (published -3.9); of AIS {_list(annealed)} "
            f"with errors of {_list(found[:, 1], 2)} (published -0.2 with 0.23), planned for 0.02.",
            bool(not agrees(nested) and agrees(annealed) and found[:, 1].min() > 0.04),
        )

    def quadrants(self) -> tuple[str, Decision | None]:
        rows = shares(self._results, DECEPTIVE)
        right = np.array([121, 121, 2025, 2025]) / 4292
        nested = rows[rows["row"] == "nest-16000-1"]
        annealed = rows[rows["row"] == "ais-1-1000"]
        off = (nested[list(QUADRANTS)].to_numpy(dtype=np.float64) - right) / nested[
            [f"{name}, error" for name in QUADRANTS]
        ].to_numpy(dtype=np.float64)
        lost = annealed["upper right"].to_numpy(dtype=np.float64)
        return (
            f"Nested sampling: largest error of a quadrant in its own errors, by run: "
            f"{_list(np.abs(off).max(axis=1))} (published 78 and more); AIS gives the upper right "
            f"{_list(lost, 4)}, which is 0.0282 (published 0.0002).",
            bool((np.abs(off).max(axis=1) > 5).all() and (lost < 0.01).all()),
        )

    def base_of_student(self) -> tuple[str, Decision | None]:
        narrow, printed = (self.found(place, "nest-93-1") for place in (STUDENT, AS_PRINTED))
        product, elliptical = truth(STUDENT), elliptical_student_log_evidence()
        return (
            f"Log Z of the product of ten t distributions is {product:.2f}, of the multivariate t "
            f"{elliptical:.2f}; the thesis prints 9.69. Errors with N=93: "
            f"{narrow[:, 1].mean():.2f} from a base of 4 and {printed[:, 1].mean():.2f} "
            "from one of 10; it prints 0.28.",
            bool(
                abs(product - 9.69) < 0.005
                and abs(narrow[:, 1].mean() - 0.28) < 0.04
                and printed[:, 1].mean() > 0.36
            ),
        )

    def low_cost(self) -> tuple[str, Decision | None]:
        table = repeated(self._results)
        annealed = table[table.index.str.startswith("AIS")]
        nested = table[table.index.str.startswith("Nest")]
        cheap = annealed[annealed["evaluations"] < 20_000]
        return (
            f"AIS below 20,000 evaluations: biases {_list(cheap['bias'].to_numpy(), 2)}, mean "
            f"squares of normalised errors {_list(cheap['normalised'].to_numpy())}; nested "
            f"sampling at all sizes: {_list(nested['normalised'].to_numpy())}.",
            bool(
                (cheap["bias"] < -3 * cheap["bias error"]).all()
                and (cheap["normalised"] > 2).all()
                and (nested["normalised"].to_numpy(dtype=np.float64) < 2).all()
            ),
        )

    def crossing(self) -> tuple[str, Decision | None]:
        table = repeated(self._results)
        nested = table[table.index.str.startswith("Nest")]
        annealed = table[table.index.str.startswith("AIS 1,10,")]
        ends = {}
        for place, k in (("cheapest", 0), ("dearest", -1)):
            ends[place] = [
                each.sort_values("evaluations")[["mse", "evaluations"]].to_numpy()[k].tolist()
                for each in (nested, annealed)
            ]
        said = "; ".join(
            f"{place}: nested {a[0]:.3f} at {a[1]:,.0f} evaluations, AIS {b[0]:.3f} at {b[1]:,.0f}"
            for place, (a, b) in ends.items()
        )
        # By mean square times evaluations, because costs are not quite equal.
        nested_worth, annealed_worth = (
            [ends[place][k][0] * ends[place][k][1] for place in ends] for k in (0, 1)
        )
        holds = nested_worth[0] < annealed_worth[0] and annealed_worth[1] < nested_worth[1]
        return f"Mean square errors, {said}.", bool(holds)

    def more_chains(self) -> tuple[str, Decision | None]:
        table = repeated(self._results)
        few, many = (table[table.index.str.startswith(f"AIS 1,{c},")] for c in (10, 100))
        first, last = (
            (many["mse"].to_numpy() * many["evaluations"].to_numpy())
            / (few["mse"].to_numpy() * few["evaluations"].to_numpy())
        )[[0, -1]]
        return (
            f"Mean square error times evaluations, 100 chains over 10 of ten times as many rungs: "
            f"{first:.1f} at the lowest precision, {last:.1f} at the highest.",
            bool(first > 1.5 and last < first),
        )

    def volumes(self) -> tuple[str, Decision | None]:
        table = volume_errors(EXPERIMENTS[self._results.profile][0])
        width = float(table["sd"].to_numpy()[list(table.index).index("log Z itself")])
        square = np.square(table[["mean", "sd"]].to_numpy(dtype=np.float64)).sum(axis=1)
        rms = dict(zip(map(str, table.index), np.sqrt(square).tolist(), strict=True))
        return (
            f"Root mean square errors of the mean of log Z: geometric path "
            f"{rms['geometric path']:.2f}, 1,200 sequences {rms['1,200 sequences']:.2f}, 12 "
            f"sequences {rms['12 sequences']:.2f}; log Z itself is {width:.1f} wide.",
            max(rms["geometric path"], rms["1,200 sequences"]) < 0.1 * width and 2.5 < width < 4.5,
        )

    def plateau(self) -> tuple[str, Decision | None]:
        table = plateau_counts(EXPERIMENTS[self._results.profile][1])
        said = ", ".join(f"{name} {row['mean']:.0f} ± {row['error']:.1f}"
                         for name, row in table.iterrows())  # fmt: skip
        off = np.abs(table["mean"] - table["expected"]) / table["error"]
        expected = ", ".join(f"{value:.0f}" for value in PLATEAU_COUNTS.values())
        return f"Iterations: {said}; expected {expected}.", bool((off < 4).all())

    def ours(self, places: Iterable[str], rows: Iterable[str]) -> tuple[str, bool]:
        """Return z of our rows, in words, and whether all of them are right."""
        said, right = [], True
        for place in places:
            for row in rows:
                scores = self.scores(place, row, OURS)
                right = right and bool(agrees(scores))
                said.append(f"{place}, {_NAMES[row]} {_list(scores)}")
        return "z of each run: " + "; ".join(said) + ".", right

    def ours_easy(self) -> tuple[str, Decision | None]:
        return self.ours((GAUSSIAN_A, STUDENT), ("collapsed", "joint", "pt"))

    def ours_hard(self) -> tuple[str, Decision | None]:
        said, right = self.ours((DECEPTIVE,), _OUR_ROWS)
        return said, not right


def _printed_score(distribution: str, row: str) -> float:
    """Return (published - truth) / error of a row; NaN if it is not published."""
    paper = printed(distribution, row)
    return (paper.log_z - truth(distribution)) / paper.error if paper else float("nan")


def _list(values: FloatArray, digits: int = 1) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in np.atleast_1d(values))


def _table(*rows: tuple[str, str]) -> Needs:
    return [(TABLE, place, row) for place, row in rows]


def claims(results: Results) -> list[Claim]:
    """The thesis's claims about Table 4.2 and Figure 4.5, and ours."""
    judge = _Judges(results)

    def claim(key: str, kind: ClaimKind, statement: str, needs: Needs, how: Judge) -> Claim:
        return judged(results, Claim(key, kind, statement), judge.lacking(needs), how)

    figure = repeated(results)

    def of_figure(key: str, statement: str, how: Judge) -> Claim:
        lacking = {"repeated runs"} if len(figure) < 6 else set()
        return judged(results, Claim(key, "paper", statement), lacking, how)

    def without_fits(key: str, statement: str, how: Judge) -> Claim:
        lacking = {"any fit"} if results.metrics.empty else set()
        return judged(results, Claim(key, "paper", statement), lacking, how)

    ours_needed = [
        (OURS, place, row)
        for place in (GAUSSIAN_A, STUDENT)
        for row in ("collapsed", "joint", "pt")
    ]
    return [
        claim("nested-right", "paper", "Nested sampling with one sweep a step is right within its "
              "errors on the Gaussians and the t distribution.", _EASY_NESTED,
              judge.nested_is_right),
        claim("one-particle", "paper", "With one particle and 1 or 10 sweeps the posterior of "
              "log Z has negligible overlap with the truth.",
              _table((GAUSSIAN_A, "nest-1-1"), (GAUSSIAN_A, "nest-1-10")), judge.one_particle),
        claim("one-particle-too-sure", "paper", "With one particle and one sweep nested sampling "
              "is biased and too sure.", _table((GAUSSIAN_A, "nest-1-1")),
              judge.one_particle_fails),
        claim("multicanonical-b", "paper", "Even with the ideal weights multicanonical sampling "
              "does worse than nested sampling on Gaussian (b).",
              _table((GAUSSIAN_B, "multi-analytic-long"), (GAUSSIAN_B, "nest-200-1")),
              judge.multicanonical_b),
        claim("linear-on-gaussian", "paper", "On the Gaussian a linear schedule of annealing is "
              "worse than fourth powers.",
              _table((GAUSSIAN_A, "ais-linear"), (GAUSSIAN_A, "ais-fourth")),
              judge.linear_on_gaussian),
        claim("linear-on-t", "paper", "On the t distribution linear schedules, and those that "
              "nested sampling sets, beat fourth powers.",
              _table((STUDENT, "ais-linear"), (STUDENT, "ais-fourth"), (STUDENT, "ais-1-100")),
              judge.linear_on_student),
        claim("short-schedule", "paper", "Many short annealing runs have larger errors than they "
              "were planned for.", _table((GAUSSIAN_A, "ais-100-1")), judge.short_schedule),
        claim("plus-mode", "paper", "About 0.97 of the annealed chains end in the + mode, a third "
              "of the mass, and weights correct it.", _table((TWO_MODES, "ais-1-1000-long")),
              judge.plus_mode),
        claim("two-modes-too-sure", "paper", "On the two modes nested sampling is too sure.",
              _table(*((TWO_MODES, f"nest-{n}-1") for n in (158, 1455, 1849, 7000))),
              judge.too_sure_on_two_modes),
        claim("deceptive", "paper", "On the deceptive distribution nested sampling's error is far "
              "too small; annealing's agrees with the truth and is larger than planned.",
              _table((DECEPTIVE, "nest-16000-1"), (DECEPTIVE, "ais-1-1000")), judge.deceived),
        claim("quadrants", "paper", "Nested sampling is too sure of the four quadrants, and "
              "annealing loses the upper right one.",
              _table((DECEPTIVE, "nest-16000-1"), (DECEPTIVE, "ais-1-1000")), judge.quadrants),
        of_figure("annealing-at-low-cost", "At low cost annealing is biased and its errors are too "
                  "small; those of nested sampling are not (Figure 4.5b, c).", judge.low_cost),
        of_figure("crossing", "Nested sampling is more accurate at low cost and annealing at high "
                  "precision (Figure 4.5a).", judge.crossing),
        of_figure("more-chains", "More annealing runs with shorter schedules do worse at equal "
                  "cost, and the difference goes away at high precision.", judge.more_chains),
        without_fits("volumes", "The geometric path, and 1,200 sequences of volumes, find the mean "
                     "of log Z well within its width of about 3 (Figure 4.4).", judge.volumes),
        without_fits("plateau", "A plateau takes about 230 iterations if ties are broken, 90 if "
                     "new particles must be higher, and 900 if not.", judge.plateau),
        claim("t-misprint", "why", "Why: the numbers of the t distribution are those of a product "
              "of ten t distributions from a base of width 4.",
              _table((STUDENT, "nest-93-1"), (AS_PRINTED, "nest-93-1")), judge.base_of_student),
        claim("ours-easy", "ours", "Ours: continuous tempering, and parallel tempering, are right "
              "within their errors on Gaussian (a) and the t distribution.", ours_needed,
              judge.ours_easy),
        claim("ours-deceived", "against", "Against: not all of our own methods are right on the "
              "deceptive distribution.", [(OURS, DECEPTIVE, row) for row in _OUR_ROWS],
              judge.ours_hard),
    ]  # fmt: skip
