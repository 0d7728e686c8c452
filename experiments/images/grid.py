"""Cells of the images experiment: every method on all images of a decoder, and the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.forms.method import Method
from harness.models.images import (
    GeneratedImages,
    ImageAutoencoder,
    digits_autoencoder,
    load_autoencoder,
)
from harness.plan.spec import Cell, Profile
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import sigmoidal_ladder

from .image_set import image_set
from .over_images import (
    ANNEALED_IMPORTANCE_OVER_IMAGES,
    BIDIRECTIONAL_OVER_IMAGES,
    COLLAPSED_TEMPERING_OVER_IMAGES,
    GIBBS_TEMPERING_OVER_IMAGES,
    JOINT_HMC_OVER_IMAGES,
    JOINT_TEMPERING_OVER_IMAGES,
    SIMULATED_TEMPERING_OVER_IMAGES,
)


@dataclass(frozen=True)
class Sizes:
    """How much is run on a set of images; the defaults are what the authors' program ran.

    Attributes
    ----------
    images, runs
        Number of images, and of runs of every method but the bounds.
    bounds
        Temperatures of the bounds, and chains an image in each of their two runs: the authors' 16
        chains are two runs of eight here, so that the bounds have an error of their own.
    annealed, annealed_chains
        Temperatures of annealed runs, and their chains an image.
    chains
        Chains an image of Gibbs CT, joint CT and simulated tempering.
    annealed_step, step
        Step sizes of AIS, and of Gibbs CT and simulated tempering, whitened: those that the authors
        chose for MNIST by hand.  So these rows have no warm-up, as theirs.
    warmup
        Warm-up of joint CT and of simulated tempering with pilot runs, which tunes their step
        sizes.
    pilot_draws
        Draws of each of the five pilot runs.
    gibbs, tempered, joint
        Draws of Gibbs CT, simulated tempering and joint CT.
    rungs
        Intervals of simulated tempering's ladder.
    steps
        Leapfrog steps of every trajectory.
    nuts, nuts_images
        Warm-up and draws of Stan's NUTS, and how many of the images it is run on, one after the
        other; no rows of it if none.
    """

    images: int
    runs: int = 10
    bounds: tuple[int, int] = (10_000, 8)
    annealed: tuple[int, ...] = (50, 100, 200, 500, 1000, 2000)
    annealed_chains: int = 16
    annealed_step: float = 0.3
    chains: int = 2
    step: float = 0.25
    warmup: int = 500
    pilot_draws: int = 100
    gibbs: int = 10_000
    tempered: int = 3000
    joint: int = 7500
    rungs: int = 1000
    steps: int = 10
    nuts: tuple[int, int] = (1000, 2500)
    nuts_images: int = 0


PROFILES: dict[Profile, tuple[Sizes, ...]] = {
    "smoke": (
        Sizes(
            images=3,
            runs=2,
            bounds=(50, 4),
            annealed=(20,),
            annealed_chains=4,
            warmup=40,
            pilot_draws=20,
            gibbs=60,
            tempered=60,
            joint=60,
            rungs=50,
            steps=5,
            nuts=(50, 50),
            nuts_images=2,
        ),
    ),
    "quick": (
        Sizes(
            images=20,
            runs=4,
            bounds=(1000, 4),
            annealed=(50, 100),
            warmup=200,
            pilot_draws=40,
            gibbs=1000,
            tempered=500,
            joint=900,
            rungs=200,
            nuts=(200, 600),
            nuts_images=8,
        ),
    ),
    # The published number, and a fifth of it at the same settings: `--only images=200`.
    "paper": (Sizes(images=200, nuts_images=50), Sizes(images=1000)),
}
IMAGES_SEED = 7
LABELS = {
    "ais": "AIS",
    "st-flat": "Simulated tempering",
    "st": "Simulated tempering, weights from pilot runs (ours)",
    "gibbs": "Gibbs CT",
    "joint-hmc": "Joint CT",
    "joint": "Joint CT by NUTS",
    "collapsed": "Collapsed CT by NUTS (ours)",
    "bdmc": "Bounds",
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
    """Cells of every size of a profile; the images of a smaller set are among a larger one's."""
    sizes = PROFILES[profile]
    largest = max(size.images for size in sizes)
    made = autoencoder.decoder.generate(np.random.default_rng(IMAGES_SEED), largest)
    for size in sizes:
        prefix = decoder if size.images == largest else f"{decoder}-{size.images}"
        yield from _cells_of(decoder, prefix, autoencoder, made, size)


def _cells_of(
    decoder: str,
    prefix: str,
    autoencoder: ImageAutoencoder,
    made: GeneratedImages,
    size: Sizes,
) -> Iterator[Cell]:
    images = image_set(autoencoder, made.image[: size.images], seed=IMAGES_SEED)
    model = images.model(f"{decoder}-{size.images}")
    nuts_images = size.nuts_images or size.images
    few = images.part(slice(0, nuts_images)).model(f"{decoder}-{nuts_images}")
    nuts = NutsSettings(chains=1, warmup=size.nuts[0], draws=size.nuts[1])
    kernel = Hmc(size.steps)
    path = {"kernel": kernel, "chains": size.chains}
    by_hand = path | {"step_size": size.step, "warmup": 0}
    ladder = sigmoidal_ladder(size.rungs + 1)

    def cell(key: str, name: str, method: Method, settings: dict[str, Any]) -> Cell:
        row = "ais" if key.startswith("ais") else key
        by_nuts = row in ("joint", "collapsed")
        return Cell(
            f"{prefix}-{key}",
            f"{LABELS[row]}{name} ({decoder}, {nuts_images if by_nuts else size.images} images)",
            {"decoder": decoder, "images": size.images, "method": row},
            few if by_nuts else model,
            method,
            settings,
            nuts,
            2 if row == "bdmc" else size.runs,
            extras={"of": (size.images, nuts_images) if row == "bdmc" else ()},
        )

    rungs, chains = size.bounds
    bounds = {
        "exact": images.whitened(made.latent[: size.images]),
        "ladder": sigmoidal_ladder(rungs + 1),
        "chains": chains,
        "kernel": kernel,
    }
    yield cell("bdmc", f", {rungs:,} temperatures", BIDIRECTIONAL_OVER_IMAGES, bounds)
    for number in size.annealed:
        annealed = {
            "ladder": sigmoidal_ladder(number + 1),
            "chains": size.annealed_chains,
            "kernel": kernel,
            "step_size": size.annealed_step,
        }
        name = f", {number:,} temperatures"
        yield cell(f"ais-{number}", name, ANNEALED_IMPORTANCE_OVER_IMAGES, annealed)
    tempered = {"ladder": ladder, "draws": size.tempered}
    unweighted = tempered | by_hand | {"log_weights": np.zeros(size.rungs + 1)}
    yield cell("st-flat", "", SIMULATED_TEMPERING_OVER_IMAGES, unweighted)
    weighted = tempered | path | {"warmup": size.warmup, "pilot_draws": size.pilot_draws}
    yield cell("st", "", SIMULATED_TEMPERING_OVER_IMAGES, weighted)
    yield cell("gibbs", "", GIBBS_TEMPERING_OVER_IMAGES, by_hand | {"draws": size.gibbs})
    joint = path | {"warmup": size.warmup, "draws": size.joint}
    yield cell("joint-hmc", "", JOINT_HMC_OVER_IMAGES, joint)
    if size.nuts_images:
        yield cell("joint", "", JOINT_TEMPERING_OVER_IMAGES, {})
        yield cell("collapsed", "", COLLAPSED_TEMPERING_OVER_IMAGES, {})
