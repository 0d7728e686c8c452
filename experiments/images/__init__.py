"""Evidence of images under a decoder (Graham and Storkey 2017, section 7.4).

Images are generated from the decoder, so that the latent vector behind each is an exact draw of
its posterior, and bidirectional Monte Carlo bounds their evidence from both sides.  All images of
one decoder are one product target; what runs from Python runs all side by side, in blocks whose
draws fit into memory.
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
        "images. The decoder was trained on 8 x 8 handwritten digits; with --data-dir at the "
        "folders of the authors' weights (MNIST, Omniglot) the same is done on theirs; Figure 4 "
        "and the test images are drawn for each. Numbers of chains, leapfrog steps, draws and "
        "temperatures are those of the authors' program, with its step sizes for MNIST; joint CT's "
        "is tuned. All images run side by side in NumPy, but for two rows of Stan's NUTS, image "
        "after image. Methods are compared at equal gradients and at equal time, where both have "
        "been. Images are independent, and tell the variance of the joint log Z where runs are few."
    ),
    reductions={
        "smoke": "3 images, 2 short runs; no claim is judged",
        "quick": "20 images and not 1,000, 4 runs and not 10, bounds of 1,000 temperatures and "
        "not 10,000, AIS of at most 100 and not 2,000, a tenth of Gibbs CT's draws, 200 rungs and "
        "not 1,000. The decoder is ours",
        "paper": "1,000 images as published, and 200 of them first at the same settings (--only "
        "images=200 runs these alone, in a sixth of the time). Without --data-dir the decoder is "
        "ours, of 8 x 8 digits: the authors' weights are not part of the project. Stan's NUTS runs "
        "50 images",
    },
    grid=grid,
    user_grid=user_grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 65, "quick": 120, "paper": 104_000},
)
