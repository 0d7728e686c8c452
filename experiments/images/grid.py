"""Cells of the images experiment: every method on all images of a decoder, and the bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.forms.method import Method
from harness.models.images import ImageAutoencoder, digits_autoencoder, load_autoencoder
from harness.plan.spec import Cell, Profile
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import sigmoidal_ladder

from .image_set import image_set
from .over_images import (
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
        "images": 12,
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
