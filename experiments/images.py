"""Evidence of images under a decoder (Graham and Storkey 2017, section 7.4).

Images are generated from the decoder, so that the latent vector behind each is an exact draw of
its posterior, and bidirectional Monte Carlo bounds their evidence from both sides.  All images of
one decoder are one product target; what runs from Python runs all side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.experiment.curves import curve, curve_of
from harness.fit import Fit
from harness.forms.method import Method
from harness.model import Model
from harness.models.image_set import image_set
from harness.models.images import ImageAutoencoder, digits_autoencoder, load_autoencoder
from harness.plan.claims import judged
from harness.plan.spec import (
    Cell,
    Claim,
    Experiment,
    Figure,
    Profile,
    Results,
    Table,
)
from harness.report.style import COLOURS, new_figure, to_image
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import sigmoidal_ladder
from harness.samplers.over_images import (
    ANNEALED_IMPORTANCE_OVER_IMAGES,
    BIDIRECTIONAL_OVER_IMAGES,
    COLLAPSED_TEMPERING_OVER_IMAGES,
    GIBBS_TEMPERING_OVER_IMAGES,
    JOINT_TEMPERING_OVER_IMAGES,
    SIMULATED_TEMPERING_OVER_IMAGES,
)

# Images, runs, (temperatures, chains an image) of the bounds, temperatures of annealed runs,
# (warm-up, draws) of Gibbs and simulated tempering, those of NUTS, rungs of simulated tempering.
PROFILES: dict[Profile, dict[str, Any]] = {
    "smoke": {
        "images": 3,
        "runs": 2,
        "bounds": (50, 4),
        "annealed": (20,),
        "path": (60, 60),
        "nuts": (50, 50),
        "rungs": 50,
    },
    "quick": {
        "images": 20,
        "runs": 4,
        "bounds": (1000, 8),
        "annealed": (50, 200, 1000),
        "path": (400, 2000),
        "nuts": (300, 1000),
        "rungs": 200,
    },
    "paper": {
        "images": 1000,
        "runs": 10,
        "bounds": (10_000, 16),
        "annealed": (50, 100, 200, 500, 1000, 2000),
        "path": (1000, 5000),
        "nuts": (1000, 2500),
        "rungs": 1000,
    },
}
ANNEALED_CHAINS = 4  # of each image; of all other methods one
LEAPFROG_STEPS = 5
IMAGES_SEED = 7
LABELS = {
    "ais": "AIS",
    "st": "Simulated tempering",
    "gibbs": "Gibbs CT",
    "joint": "Joint CT",
    "collapsed": "Collapsed CT (ours)",
}
WEIGHTS = "decoder_params.npz"


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All methods on images of the decoder that the project ships."""
    return tuple(_cells("digits", digits_autoencoder(), profile))


def user_grid(profile: Profile, folder: Path) -> tuple[Cell, ...]:
    """The same on decoders of the user's own: folders of weights in ``folder``, or itself."""
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    cells: list[Cell] = []
    for place in (path for path in places if (path / WEIGHTS).is_file()):
        name = "".join(c if c.isalnum() else "-" for c in place.resolve().name.lower()).strip("-")
        if not name or name == "digits":
            raise DataError(f"rename the folder {place}: it gives the decoder its name")
        cells += _cells(name, load_autoencoder(place), profile)
    return tuple(cells)


def _cells(decoder: str, autoencoder: ImageAutoencoder, profile: Profile) -> Iterator[Cell]:
    size = PROFILES[profile]
    rng = np.random.default_rng(IMAGES_SEED)
    made = autoencoder.decoder.generate(rng, size["images"])
    images = image_set(autoencoder, made.image, seed=IMAGES_SEED)
    model = images.model(f"{decoder}-{size['images']}")
    nuts = NutsSettings(chains=1, warmup=size["nuts"][0], draws=size["nuts"][1])
    warmup, draws = size["path"]
    moves = {"kernel": Hmc(LEAPFROG_STEPS), "warmup": warmup, "draws": draws}

    def cell(key: str, name: str, method: Method, settings: dict[str, Any]) -> Cell:
        label = LABELS.get(key.split("-")[0], "BDMC") + (f", {name}" if name else "")
        factors = {"decoder": decoder, "method": key.split("-")[0]}
        runs = 2 if key == "bdmc" else size["runs"]
        return Cell(
            f"{decoder}-{key}",
            f"{label} ({decoder})",
            factors,
            model,
            method,
            settings,
            nuts,
            runs,
        )

    rungs, chains = size["bounds"]
    bounds = {
        "exact": images.whitened(made.latent),
        "ladder": sigmoidal_ladder(rungs),
        "chains": chains,
        "kernel": Hmc(LEAPFROG_STEPS),
    }
    yield cell("bdmc", f"{rungs:,} temperatures", BIDIRECTIONAL_OVER_IMAGES, bounds)
    for number in size["annealed"]:
        annealed = {
            "ladder": sigmoidal_ladder(number),
            "chains": ANNEALED_CHAINS,
            "kernel": Hmc(LEAPFROG_STEPS),
        }
        name = f"{number:,} temperatures"
        yield cell(f"ais-{number}", name, ANNEALED_IMPORTANCE_OVER_IMAGES, annealed)
    ladder = sigmoidal_ladder(size["rungs"])
    yield cell("st", "", SIMULATED_TEMPERING_OVER_IMAGES, {"ladder": ladder, **moves})
    yield cell("gibbs", "", GIBBS_TEMPERING_OVER_IMAGES, moves)
    yield cell("joint", "", JOINT_TEMPERING_OVER_IMAGES, {})
    yield cell("collapsed", "", COLLAPSED_TEMPERING_OVER_IMAGES, {})


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Log joint evidence of the images, its error, and the way to it."""
    value, mcse = fit.log_evidence
    attrs = fit.tree.attrs
    metrics = {"log_evidence": value, "mcse": mcse}
    if "upper_log_evidence" in attrs:
        metrics["upper"] = float(attrs["upper_log_evidence"])
    if "part_log_evidence" in attrs:
        seconds, warmup = fit.seconds, float(np.sum(attrs["seconds_warmup"]))
        if not warmup:  # driven from Python: all of its time is one figure
            ran = fit.settings
            before = ran["warmup"] + ran.get("pilots", 0) * ran.get("pilot_draws", 0)
            warmup = seconds * before / (before + ran["draws"])
        metrics |= curve_of(np.asarray(attrs["part_log_evidence"]), warmup, seconds)
    return metrics


def _images_of(model: Model) -> int:
    return len(model.data["y"])


def bounds(results: Results, decoder: str) -> tuple[float, float] | None:
    """Stochastic lower and upper bound on the log joint evidence, means over runs."""
    runs = results.metrics[results.metrics["cell"] == f"{decoder}-bdmc"]
    if not len(runs):
        return None
    return float(runs["log_evidence"].mean()), float(runs["upper"].mean())


def errors(results: Results, decoder: str) -> pd.DataFrame:
    """A row a cell of a decoder: error of the joint log Z against the middle of the bounds."""
    between = bounds(results, decoder)
    rows = []
    for cell in results.cells:
        if cell.factors["decoder"] != decoder or cell.factors["method"] == "bdmc" or not between:
            continue
        runs = results.metrics[results.metrics["cell"] == cell.key]
        error = runs["log_evidence"].to_numpy() - sum(between) / 2
        mcse = float(np.sqrt(np.square(runs["mcse"]).mean()))
        rms, seconds = float(np.sqrt(np.square(error).mean())), float(runs["seconds"].mean())
        rows.append(
            {
                "key": cell.key,
                "label": cell.label,
                "method": cell.factors["method"],
                "runs": len(runs),
                "mean_error": float(error.mean()),
                "se": float(error.std(ddof=1) / np.sqrt(len(error))),
                "rmse": rms,
                "mcse": mcse,
                "seconds": seconds,
                "kilogradients": float(runs["gradients"].mean() / 1000),
                "efficiency": 1 / (rms**2 * seconds),
            }
        )
    return pd.DataFrame(rows).set_index("key") if rows else pd.DataFrame()


def _decoders(results: Results) -> list[str]:
    return list(dict.fromkeys(str(cell.factors["decoder"]) for cell in results.cells))


def tables(results: Results) -> list[Table]:
    """Bounds, and errors of the joint log Z by method, of each decoder."""
    made = []
    for decoder in _decoders(results):
        table, between = errors(results, decoder), bounds(results, decoder)
        if between is None or not len(table):
            continue
        shown = pd.DataFrame(
            {
                "runs": table["runs"],
                "mean error": [
                    f"{m:+.2f} ± {s:.2f}"
                    for m, s in zip(table["mean_error"], table["se"], strict=True)
                ],
                "RMSE": table["rmse"].round(3),
                "by MCSE": table["mcse"].round(3),
                "seconds a run": table["seconds"].round(2),
                "thousand gradients": table["kilogradients"].round(0),
                "1 / (error² s)": table["efficiency"].round(2),
            }
        ).set_index(table["label"])
        shown.index.name = "method"
        made.append(
            Table(
                f"errors-{decoder}",
                f"Log joint evidence of the images of {decoder}, in nats: error against the "
                f"middle of the bounds {between[0]:.2f} and {between[1]:.2f}; what the runs' own "
                "Monte Carlo standard errors predict; and runs of RMSE 1 that a second is worth, a "
                "noisy number of few runs. Seconds are of one process.",
                shown,
            )
        )
    return made


def figures(results: Results) -> list[Figure]:
    """The paper's Figure 4, one a decoder."""
    made = (figure_4(results, decoder) for decoder in _decoders(results))
    return [figure for figure in made if figure is not None]


def figure_4(results: Results, decoder: str) -> Figure | None:
    """Estimates of the log joint evidence against time, and their errors."""
    between, table = bounds(results, decoder), errors(results, decoder)
    if between is None or not len(table):
        return None
    middle = sum(between) / 2
    figure, axes = new_figure(1, 2, width=9.0, height=3.6)
    metrics = results.metrics
    for colour, (method, label) in zip(COLOURS, LABELS.items(), strict=False):
        rows = table[table["method"] == method]
        if not len(rows):
            continue
        if method == "ais":
            error = 3 * rows["se"]
            axes[0].errorbar(
                rows["seconds"],
                middle + rows["mean_error"],
                error,
                fmt="o",
                color=colour,
                markersize=4,
                label=label,
            )
            axes[1].plot(rows["seconds"], rows["rmse"], "o-", color=colour, markersize=4)
            continue
        runs = metrics[metrics["cell"] == rows.index[0]]
        line = curve(runs)
        low, high = line["mean"] - 3 * line["se"], line["mean"] + 3 * line["se"]
        axes[0].plot(line["seconds"], line["mean"], color=colour, label=label)
        axes[0].fill_between(line["seconds"], low, high, color=colour, alpha=0.18, linewidth=0)
        square = np.mean(
            [(runs[f"log_evidence_{part}"] - middle) ** 2 for part in range(1, len(line) + 1)],
            axis=1,
        )
        axes[1].plot(line["seconds"], np.sqrt(square), color=colour)
    for bound, colour, name in zip(between, ("black", "#b00020"), ("lower", "upper"), strict=True):
        axes[0].axhline(bound, color=colour, linestyle="--", linewidth=1, label=f"{name} bound")
    reach = max(3.0, 3 * float(table["rmse"].median()))
    axes[0].set(ylim=(middle - reach, middle + reach), ylabel="log joint evidence, nats")
    axes[1].axhline((between[1] - between[0]) / 2, color="black", linestyle=":", linewidth=1)
    axes[1].set(yscale="log", ylabel="RMSE, nats")
    for axis in axes:
        axis.set(xscale="log", xlabel="seconds")
    axes[0].legend(fontsize=6.5)
    return Figure(
        f"figure-4-{decoder}",
        f"Images of {decoder}: estimates of their log joint evidence against time, means over runs "
        "with three standard errors, between the stochastic bounds (dashed); and their root mean "
        "squared error from the bounds' middle, of which half the gap (dotted) is not resolved.",
        "Two charts of estimates of log joint evidence and their errors against seconds.",
        to_image(figure),
    )


Judge = Callable[[Results, str, pd.DataFrame], tuple[str, bool]]


def _sandwich(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    runs = results.metrics[results.metrics["cell"] == f"{decoder}-bdmc"]
    gap = runs["upper"] - runs["log_evidence"]
    images = _images_of(next(c for c in results.cells if c.key == f"{decoder}-bdmc").model)
    per_image = float(gap.mean()) / images
    return (
        f"Upper minus lower bound: {gap.mean():.2f} nats over {images} images, {per_image:.3f} an "
        f"image ({len(runs)} runs; {gap.min():.2f} to {gap.max():.2f}).",
        bool(-0.05 < per_image < 0.25),
    )


def _efficiency(table: pd.DataFrame, method: str) -> float:
    """Best of a method's cells."""
    return float(table.loc[table["method"] == method, "efficiency"].max())


def _similar(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    ratio = _efficiency(table, "gibbs") / _efficiency(table, "ais")
    return (
        f"1 / (error² s) of Gibbs CT is {ratio:.2f} times that of AIS at its best length; similar "
        "means within a factor of 4.",
        bool(0.25 <= ratio <= 4),
    )


def _below_gibbs(method: str) -> Judge:
    def judge(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
        ratio = _efficiency(table, method) / _efficiency(table, "gibbs")
        ours, gibbs = (table[table["method"] == name].iloc[0] for name in (method, "gibbs"))
        return (
            f"RMSE {ours['rmse']:.2f} in {ours['seconds']:.1f} s, Gibbs CT "
            f"{gibbs['rmse']:.2f} in {gibbs['seconds']:.1f} s: "
            f"1 / (error² s) is {ratio:.2f} times that of Gibbs CT.",
            ratio < 1,
        )

    return judge


def _collapsed(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    ratio = _efficiency(table, "collapsed") / _efficiency(table, "joint")
    return f"1 / (error² s) is {ratio:.2f} times that of joint CT.", ratio > 1


CLAIMS: tuple[tuple[str, tuple[str, ...], Judge], ...] = (
    ("Long annealed runs from both ends sandwich the evidence.", (), _sandwich),
    ("Gibbs CT and AIS perform similarly.", ("gibbs", "ais"), _similar),
    ("Joint CT converges less quickly than Gibbs CT.", ("joint", "gibbs"), _below_gibbs("joint")),
    (
        "Simulated tempering is less efficient than Gibbs CT.",
        ("st", "gibbs"),
        _below_gibbs("st"),
    ),
    (
        "Ours: collapsing the temperature makes NUTS on the path more efficient.",
        ("collapsed", "joint"),
        _collapsed,
    ),
)


def claims(results: Results) -> list[Claim]:
    """The paper's statements on each decoder, against the bounds."""
    stated = []
    for decoder in _decoders(results) or ["digits"]:
        table = errors(results, decoder)
        have = set(table["method"]) if len(table) else set()
        for statement, needs, judge in CLAIMS:
            lacking = set(needs) - have if have else {"the bounds"}
            said = f"{statement} ({decoder})"
            found = partial(_of_runs, judge, results, decoder, table)
            stated.append(judged(results, said, lacking, found))
    return stated


def _of_runs(judge: Judge, results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    measured, holds = judge(results, decoder, table)
    return f"{measured} {int(table['runs'].min())} runs or more.", holds


EXPERIMENT = Experiment(
    name="images",
    title="Evidence of images under a decoder",
    source="Graham and Storkey (2017), section 7.4 and Figure 4",
    summary=(
        "Binary images generated from a decoder of two tanh layers; the base of each image's "
        "posterior is the encoder's Gaussian, log zeta the importance-weighted bound with 100 "
        "samples. The target is the product over images; an estimate of its log Z is a sum over "
        "images. The decoder was trained on 8 x 8 handwritten digits; with --data-dir at folders "
        "of the authors' weights the same is done on theirs. Joint and collapsed CT are Stan's "
        "NUTS, image after image; all others are HMC, all images side by side in NumPy, so that "
        "seconds compare implementations, too."
    ),
    reductions={
        "smoke": "3 images, 2 short runs; no claim is judged",
        "quick": "20 images and not 1,000, 4 runs and not 10, bounds of 1,000 temperatures and "
        "not 10,000, AIS of at most 1,000",
        "paper": "",
    },
    grid=grid,
    user_grid=user_grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 65, "quick": 160, "paper": 20_000},
)
