"""Run samplers on many images at once; the fit is that of the product of their posteriors.

A draw of the product consists of a draw of every image's latent vector.  Its log Z is the sum of
theirs, the log joint marginal likelihood of the images (Graham and Storkey 2017, section 7.4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.evidence import LogEvidence
from harness.fit import Fit, build_fit, evidence_attributes
from harness.forms.common import Run, compiled_variant
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.form import Form, sample
from harness.forms.method import Method
from harness.model import Model
from harness.path.data import TemperedPath
from harness.samplers.annealed_importance import annealed_importance, bidirectional
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.simulated_tempering import simulated_tempering

from .image_set import ImageSet, set_of


def sample_path_over_images(
    model: Model,
    *,
    sampler: Callable[..., Fit],
    chains: int = 1,
    nuts: object = None,
    seed: int,
    compiled: object = None,
    **settings: Any,
) -> Fit:
    """Run Gibbs or simulated tempering on all images side by side.

    Parameters
    ----------
    model
        A model made by :meth:`experiments.images.image_set.ImageSet.model`.
    sampler
        The sampler; all images share its tuning.
    chains
        Number of chains for each image.
    nuts, compiled
        Not used; every method takes them.
    seed, **settings
        Passed on to the sampler.

    Returns
    -------
    Fit
        Fit of the product: the parameter ``z`` holds a draw for every image, shape (K, L),
        whitened.  Attributes: ``log_evidence`` and its error; ``part_log_evidence``, the estimate
        after each part of the draws (:func:`harness.evidence.part_shares`); and
        ``image_log_evidence``, (K,).

    Raises
    ------
    DataError
        For the same reasons as in the sampler, or if the model is no set of images.
    """
    images = set_of(model)
    count = len(images.image)
    fit = sampler(model, images.base, chains=chains * count, seed=seed, **settings)
    extended = fit.tree["extended"]
    log_w1, log_w0 = (_by_image(extended[name].to_numpy(), count) for name in ("log_w1", "log_w0"))
    z = fit.posterior["z"].to_numpy()
    chosen = np.moveaxis(z.reshape(chains, count, *z.shape[1:]), 1, 2)
    log_g = np.asarray(fit.settings["log_g"])
    ratio = float(log_g[-1, 1] - log_g[0, 1])
    return _product(fit, images, chosen, log_w1, log_w0, ratio)


def sample_nuts_over_images(
    model: Model,
    *,
    form: Form,
    nuts: NutsSettings | None = None,
    seed: int,
    compiled: CompiledProgram | None = None,
) -> Fit:
    """Run joint or collapsed continuous tempering by NUTS, one image after another.

    Parameters and result are the same as for :func:`sample_path_over_images`, except that ``z`` is
    the latent vector itself, not whitened.  Chains start at draws of each image's base.

    Raises
    ------
    DataError
        If the model is no set of images.
    SamplingError
        If Stan does not finish.
    """
    images = set_of(model)
    nuts = nuts or NutsSettings()
    compiled = compiled or compiled_variant(model, form.program)
    states = np.random.SeedSequence([seed, 4]).generate_state(len(images.image))
    fits = []
    for number, state in enumerate(states):
        single, base = images.single(number, f"{model.name}-{number}")
        starts = base.sample(np.random.default_rng([int(state), 5]), nuts.chains)
        inits = [{"z": start.tolist()} for start in starts]
        run = Run(seed=int(state), nuts=nuts, inits=inits, compiled=compiled)
        fits.append(sample(single, form, TemperedPath(base=base), run))
    trees = [fit.tree for fit in fits]
    log_w1, log_w0 = (
        np.stack([tree["extended"][name].to_numpy() for tree in trees])
        for name in ("log_w1", "log_w0")
    )
    z = np.stack([tree["posterior"]["z"].to_numpy() for tree in trees], axis=2)
    joined = fits[0]
    for kind in ("gradients", "seconds"):
        for phase in ("warmup", "sampling"):
            name = f"{kind}_{phase}"
            joined.tree.attrs[name] = np.sum([tree.attrs[name] for tree in trees], axis=0)
    joined.tree.attrs |= {"model": model.name, "seed": seed}
    stats = {
        "diverging": np.any([tree["sample_stats"]["diverging"].to_numpy() for tree in trees], 0)
    }
    return _product(joined, images, z, log_w1, log_w0, 0.0, stats)


def sample_annealed_over_images(
    model: Model,
    *,
    chains: int = 1,
    nuts: object = None,
    seed: int,
    compiled: object = None,
    **settings: Any,
) -> Fit:
    """Run annealed importance sampling on all images side by side, like the functions above."""
    images = set_of(model)
    count = len(images.image)
    fit = annealed_importance(model, images.base, chains=chains * count, seed=seed, **settings)
    return _annealed(fit, images)


def sample_bidirectional_over_images(
    model: Model,
    *,
    exact: FloatArray,
    chains: int = 16,
    nuts: object = None,
    seed: int,
    compiled: object = None,
    **settings: Any,
) -> Fit:
    """Anneal all images up from the base and down from exact draws of their posteriors.

    Parameters
    ----------
    exact
        One exact draw of each image's posterior, whitened, shape (K, L): the latent vector that
        the image was generated from.  Every chain of an image goes down from it.
    chains
        Number of chains for each image in each direction.
    model, nuts, seed, compiled, **settings
        The same as for :func:`sample_path_over_images`.

    Returns
    -------
    Fit
        A fit like that of annealed importance sampling.  ``log_evidence`` is the stochastic lower
        bound, and the attribute ``upper_log_evidence`` the upper one.
    """
    images = set_of(model)
    count = len(images.image)
    starts = np.tile(np.asarray(exact, dtype=np.float64), (chains, 1))
    found = bidirectional(model, images.base, starts, seed=seed, **settings)
    fit = _annealed(found.forward, images)
    down = _by_image(found.log_weight_down[:, None], count)[..., 0]
    log_mean = np.logaddexp.reduce(-down, axis=1) - np.log(chains)
    fit.tree.attrs["upper_log_evidence"] = float((images.log_zeta - log_mean).sum())
    return fit


def _by_image(rows: FloatArray, count: int) -> FloatArray:
    """Sort values of chains, (chains K, draws), by image; return (K, chains, draws)."""
    return np.moveaxis(rows.reshape(-1, count, rows.shape[1]), 1, 0)


def _product(
    fit: Fit,
    images: ImageSet,
    z: FloatArray,
    log_w1: FloatArray,
    log_w0: FloatArray,
    log_g_ratio: float,
    stats: dict[str, Any] | None = None,
) -> Fit:
    """Return the fit of the product, given log weights (K, chains, draws)."""
    ends = list(zip(log_w1, log_w0, images.log_zeta.tolist(), strict=True))
    parts = np.sum(
        [
            evidence.log_evidence_by_parts(one, zero, log_zeta=zeta, log_g_ratio=log_g_ratio)
            for one, zero, zeta in ends
        ],
        axis=0,
    )
    each = [
        evidence.log_evidence(one, zero, log_zeta=zeta, log_g_ratio=log_g_ratio)
        for one, zero, zeta in ends
    ]
    return _fit(fit, z, each, stats, {"part_log_evidence": parts})


def _annealed(fit: Fit, images: ImageSet) -> Fit:
    extended = fit.tree["extended"]
    count = len(images.image)
    log_weight = _by_image(fit.log_weight.T, count)[..., 0]
    ends = extended["z"].to_numpy()[0].reshape(-1, count, images.decoder.dimension)
    index = evidence.resample(log_weight, np.random.default_rng(fit.tree.attrs["seed"]))
    z = ends[index.T, np.arange(count)][None]
    each = []
    for row, zeta in zip(log_weight, images.log_zeta, strict=True):
        scaled = np.exp(row - row.max())
        error = scaled.std(ddof=1) / np.sqrt(len(row)) / scaled.mean() if len(row) > 1 else np.nan
        value = float(zeta + row.max() + np.log(scaled.mean()))
        each.append(LogEvidence(value, float(error)))
    return _fit(fit, z, each, None, {})


def _fit(
    fit: Fit,
    z: FloatArray,
    each: list[LogEvidence],
    stats: dict[str, Any] | None,
    found: dict[str, Any],
) -> Fit:
    kept = ("settings", "format", "log_evidence", "log_evidence_mcse")
    return build_fit(
        posterior={"z": z},
        extended=None,
        sample_stats=stats or {"lp": np.zeros(z.shape[:2])},
        constant_data={},
        attrs={str(name): v for name, v in fit.tree.attrs.items() if name not in kept}
        | {
            "settings": fit.settings,
            **evidence_attributes(reduce(LogEvidence.plus, each)),
            "image_log_evidence": np.array([estimate.value for estimate in each]),
            **found,
        },
    )


def _over_images(name: str, call: Callable[..., Fit], **fixed: Any) -> Method:
    return Method(f"{name}_over_images", None, partial(call, **fixed), driven_by="python")


GIBBS_TEMPERING_OVER_IMAGES = _over_images(
    "gibbs_tempering", sample_path_over_images, sampler=gibbs_tempering
)
SIMULATED_TEMPERING_OVER_IMAGES = _over_images(
    "simulated_tempering", sample_path_over_images, sampler=simulated_tempering
)
ANNEALED_IMPORTANCE_OVER_IMAGES = _over_images("annealed_importance", sample_annealed_over_images)
BIDIRECTIONAL_OVER_IMAGES = _over_images("bidirectional", sample_bidirectional_over_images)
JOINT_TEMPERING_OVER_IMAGES = Method(
    "joint_tempering_over_images",
    JointTempering.name,
    partial(sample_nuts_over_images, form=JointTempering()),
)
COLLAPSED_TEMPERING_OVER_IMAGES = Method(
    "collapsed_tempering_over_images",
    CollapsedTempering.name,
    partial(sample_nuts_over_images, form=CollapsedTempering()),
)
