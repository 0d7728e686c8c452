"""Evidence of images under a decoder (Graham and Storkey 2017, section 7.4).

Images are generated from the decoder, so that the latent vector behind each is an exact draw of
its posterior, and bidirectional Monte Carlo bounds their evidence from both sides.  All images of
one decoder are one product target; what runs from Python runs all side by side.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid, user_grid
from .summary import measure
from .tables import tables

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
        "quick": "12 images and not 1,000, 4 runs and not 10, bounds of 1,000 temperatures and "
        "not 10,000, AIS of at most 1,000",
        "paper": "",
    },
    grid=grid,
    user_grid=user_grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 65, "quick": 120, "paper": 20_000},
)
