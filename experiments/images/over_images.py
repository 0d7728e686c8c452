"""Run samplers on many images at once; the fit is that of the product of their posteriors.

A draw of the product consists of a draw of every image's latent vector.  Its log Z is the sum of
theirs, the log joint marginal likelihood of the images (Graham and Storkey 2017, section 7.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

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
from harness.samplers.joint_hmc import joint_hmc
from harness.samplers.simulated_tempering import simulated_tempering
from harness.seeds import derived_seeds

from .image_set import ImageSet, set_of

_NUMBERS_AT_ONCE = 25_000_000
"""Coordinates of draws that a block of images may hold, 200 MB; more images are run in blocks."""

_NUMBERS_KEPT = 2_000_000
"""Coordinates of draws that a fit keeps: of longer runs every so many draws are kept."""


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
    """Run Gibbs, simulated or joint tempering on all images side by side.

    Images whose draws do not fit into memory together are run in blocks, one after the other.

    Parameters
    ----------
    model
        A model made by :meth:`experiments.images.image_set.ImageSet.model`.
    sampler
        The sampler; all images of a block share its tuning.
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
        whitened.  Attributes: ``log_evidence`` and its error; ``image_log_evidence``, (K,); and
        ``part_log_evidence``, the estimates after each part of the draws
        (:func:`harness.evidence.part_shares`), image after image, (12 K,).

    Raises
    ------
    DataError
        For the same reasons as in the sampler, or if the model is no set of images.
    """
    images = set_of(model)
    size = chains * int(settings.get("draws", 1000)) * images.decoder.dimension
    blocks = list(_blocks(len(images.image), size))
    states = derived_seeds(len(blocks), seed, 6)
    found: list[_Block] = []
    for at, state in zip(blocks, states, strict=True):
        some = images.part(at)
        count = len(some.image)
        fit = _by_processor(
            sampler(
                some.model(model.name),
                some.base,
                chains=chains * count,
                seed=state,
                **settings,
            )
        )
        extended = fit.tree["extended"]
        weights = [_by_image(extended[name].to_numpy(), count) for name in ("log_w1", "log_w0")]
        z = fit.posterior["z"].to_numpy()
        chosen = np.moveaxis(z.reshape(chains, count, *z.shape[1:]), 1, 2)
        log_g = np.asarray(fit.settings["log_g"])
        ratio = float(log_g[-1, 1] - log_g[0, 1])
        found.append(
            _block(fit, some, chosen, *weights, total=len(images.image), log_g_ratio=ratio)
        )
    return _product(found, model, seed)


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Cut images into blocks of about equal size, each of whose draws fit into memory.

    Parameters
    ----------
    count
        Number of images.
    size
        Coordinates of all draws of one image.
    """
    at_once = max(1, min(count, _NUMBERS_AT_ONCE // size))
    number = -(-count // at_once)
    ends = [count * block // number for block in range(number + 1)]
    for start, end in pairwise(ends):
        yield slice(start, end)


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
    states = derived_seeds(len(images.image), seed, 4)
    found: list[_Block] = []
    for number, state in enumerate(states):
        single, base = images.single(number, f"{model.name}-{number}")
        starts = base.sample(np.random.default_rng([state, 5]), nuts.chains)
        inits = [{"z": start.tolist()} for start in starts]
        run = Run(seed=state, nuts=nuts, inits=inits, compiled=compiled)
        fit = sample(single, form, TemperedPath(base=base), run)
        extended = fit.tree["extended"]
        weights = [extended[name].to_numpy()[None] for name in ("log_w1", "log_w0")]
        z = fit.posterior["z"].to_numpy()[:, :, None]
        some = images.part(slice(number, number + 1))
        found.append(_block(fit, some, z, *weights, total=len(states)))
    return _product(found, model, seed)


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
    fit = _by_processor(
        annealed_importance(model, images.base, chains=chains * count, seed=seed, **settings)
    )
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
        bound, and the attribute ``upper_log_evidence`` the upper one; ``image_upper_log_evidence``
        has those of the images, (K,).
    """
    images = set_of(model)
    count = len(images.image)
    starts = np.tile(np.asarray(exact, dtype=np.float64), (chains, 1))
    found = bidirectional(model, images.base, starts, seed=seed, **settings)
    fit = _annealed(found.forward, images)
    down = _by_image(found.log_weight_down[:, None], count)[..., 0]
    log_mean = np.logaddexp.reduce(-down, axis=1) - np.log(chains)
    upper = images.log_zeta - log_mean
    fit.tree.attrs |= {"upper_log_evidence": float(upper.sum()), "image_upper_log_evidence": upper}
    return fit


def _by_processor(fit: Fit) -> Fit:
    """Give a fit its processor seconds as its time, which no other process moves.

    Methods are compared by them, and a run on a busy machine may wait for most of its time.
    """
    attrs = fit.tree.attrs
    share = attrs["seconds_sampling"]
    # Once taken over they are left out: a product of blocks has the sum of all.
    attrs["seconds_sampling"] = np.full_like(share, attrs.pop("seconds_processor") / len(share))
    return fit


def _by_image(rows: FloatArray, count: int) -> FloatArray:
    """Sort values of chains, (chains K, draws), by image; return (K, chains, draws)."""
    return np.moveaxis(rows.reshape(-1, count, rows.shape[1]), 1, 0)


@dataclass(frozen=True)
class _Block:
    """What is kept of the run on a block of k images."""

    attrs: dict[str, Any]
    """Attributes of the run's fit, which say what it cost."""
    settings: dict[str, Any]
    """Settings of the run."""
    z: FloatArray
    """Some of the draws, (chains, draws, k, L)."""
    diverging: npt.NDArray[np.bool_]
    """Whether a step diverged on the way to each of these draws, (chains, draws)."""
    parts: FloatArray
    """Estimates of log Z after each part of the draws, (k, 12)."""
    each: list[LogEvidence]
    """Estimates of log Z."""


def _block(
    fit: Fit,
    images: ImageSet,
    z: FloatArray,
    log_w1: FloatArray,
    log_w0: FloatArray,
    *,
    total: int,
    log_g_ratio: float = 0.0,
) -> _Block:
    """Estimate log Z of each image of a block, given log weights (k, chains, draws).

    ``total`` is the number of all images, which decides how many draws can be kept.
    """
    ends = list(zip(log_w1, log_w0, images.log_zeta.tolist(), strict=True))
    parts = [
        evidence.log_evidence_by_parts(one, zero, log_zeta=zeta, log_g_ratio=log_g_ratio)
        for one, zero, zeta in ends
    ]
    each = [
        evidence.log_evidence(one, zero, log_zeta=zeta, log_g_ratio=log_g_ratio)
        for one, zero, zeta in ends
    ]
    chains, draws, _, dimension = z.shape
    every = -(-chains * draws * total * dimension // _NUMBERS_KEPT)
    first = np.arange(0, draws, every)
    stats = fit.sample_stats
    diverging = (
        np.logical_or.reduceat(stats["diverging"].to_numpy(), first, axis=1)
        if "diverging" in stats
        else np.zeros((chains, len(first)), dtype=np.bool_)
    )
    attrs = {str(name): value for name, value in fit.tree.attrs.items()}
    return _Block(attrs, fit.settings, z[:, first], diverging, np.stack(parts), each)


def _product(blocks: list[_Block], model: Model, seed: int) -> Fit:
    """Return the fit of the product of all blocks, whose costs are added."""
    z = np.concatenate([block.z for block in blocks], axis=2)
    chains = len(z)
    cost = {
        name: np.full(chains, sum(float(np.sum(block.attrs[name])) for block in blocks) / chains)
        for name in ("gradients_warmup", "gradients_sampling", "seconds_warmup", "seconds_sampling")
    }
    densities = sum(int(np.sum(block.attrs.get("densities", 0))) for block in blocks)
    first = blocks[0]
    return _fit(
        first.attrs | cost | {"densities": densities, "model": model.name, "seed": seed},
        first.settings,
        z,
        [estimate for block in blocks for estimate in block.each],
        np.any([block.diverging for block in blocks], axis=0),
        {"part_log_evidence": np.concatenate([block.parts for block in blocks]).ravel()},
    )


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
    attrs = {str(name): value for name, value in fit.tree.attrs.items()}
    return _fit(attrs, fit.settings, z, each, np.zeros(z.shape[:2], dtype=np.bool_), {})


def _fit(
    attrs: dict[str, Any],
    settings: dict[str, Any],
    z: FloatArray,
    each: list[LogEvidence],
    diverging: npt.NDArray[np.bool_],
    found: dict[str, Any],
) -> Fit:
    dropped = ("settings", "format", "log_evidence", "log_evidence_mcse")
    return build_fit(
        posterior={"z": z},
        extended=None,
        sample_stats={"diverging": diverging},
        constant_data={},
        attrs={name: value for name, value in attrs.items() if name not in dropped}
        | {
            "settings": settings,
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
JOINT_HMC_OVER_IMAGES = _over_images("joint_hmc", sample_path_over_images, sampler=joint_hmc)
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
