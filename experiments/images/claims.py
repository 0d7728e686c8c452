"""What the paper says of this experiment, and what we say, each against the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from harness.plan.claims import judged
from harness.plan.effects import Decision, Undecided, all_hold, mean_effect
from harness.plan.spec import Claim, Results

from .summary import ImageResults, Line, decoders, image_results

Judge = Callable[[ImageResults], tuple[str, Decision]]

_SIMILAR = 2.0
"""Errors are similar that are within this factor of each other, either way."""

_MEET = Undecided("runs whose costs meet")


def _sandwich(found: ImageResults) -> tuple[str, Decision]:
    gap = mean_effect(found.gap / found.images)
    return (
        f"Upper minus lower bound: {found.gap.mean():.2f} nats, an image {gap.told(3)}, which must "
        f"lie between -0.05 and 0.25 ({gap.runs} runs of the bounds)",
        gap.lies(above=-0.05, below=0.25),
    )


def _at_equal_cost(
    one: Line, other: Line, unit: str, *, above: float = 0.0, below: float = float("inf")
) -> tuple[str, Decision]:
    """Compare two lines that both grow at the largest cost that both have reached."""
    cost = float(min(one.cost(unit)[-1], other.cost(unit)[-1]))
    first, second = one.error_at(cost, unit), other.error_at(cost, unit)
    if first is None or second is None:
        return f"the costs of {one.label} and {other.label} do not meet", _MEET
    effect = first.over(second)
    return (
        f"at {_cost(cost, unit)} {first.rmse:.2f} over {second.rmse:.2f} nats, {effect.told()}",
        effect.lies(above=above, below=below),
    )


def _cost(cost: float, unit: str) -> str:
    return (
        f"{cost / 1e6:.2f} million gradients"
        if unit == "gradients"
        else f"{cost:.3g} s of processor time"
    )


def _similar(unit: str) -> Judge:
    """Judge whether Gibbs CT has an error like that of AIS at the cost of every length of AIS."""

    def judge(found: ImageResults) -> tuple[str, Decision]:
        gibbs, ais = found.lines["gibbs"], found.lines["ais"]
        met = [
            (cost, ais.error(point), there)
            for point, cost in enumerate(ais.cost(unit))
            if (there := gibbs.error_at(float(cost), unit)) is not None
        ]
        if not met:
            return "The costs of Gibbs CT and AIS do not meet", _MEET
        effects = [(cost, there.over(error)) for cost, error, there in met]
        parts = "; ".join(f"at {_cost(cost, unit)} {effect.told()}" for cost, effect in effects)
        return (
            f"RMSE of Gibbs CT over that of AIS: {parts}. Similar means within a factor of "
            f"{_SIMILAR:g} at each of these lengths of AIS",
            all_hold(
                effect.lies(above=1 / _SIMILAR, below=_SIMILAR, of=len(effects))
                for _, effect in effects
            ),
        )

    return judge


def _worse(method: str, unit: str) -> Judge:
    """Judge whether a method's error is larger than that of Gibbs CT at equal cost."""
    other = "seconds" if unit == "gradients" else "gradients"

    def judge(found: ImageResults) -> tuple[str, Decision]:
        one, gibbs = found.lines[method], found.lines["gibbs"]
        said, holds = _at_equal_cost(one, gibbs, unit, above=1)
        beside, _ = _at_equal_cost(one, gibbs, other)
        return f"RMSE over that of Gibbs CT: {said}, which is judged; {beside}", holds

    return judge


def _index(found: ImageResults) -> tuple[str, Decision]:
    one, gibbs = found.lines["st-flat"], found.lines["gibbs"]
    said, holds = _at_equal_cost(one, gibbs, "gradients", above=1 / _SIMILAR, below=_SIMILAR)
    slower = (one.seconds[-1] / one.gradients[-1]) / (gibbs.seconds[-1] / gibbs.gradients[-1])
    return (
        f"RMSE over that of Gibbs CT: {said}, which must lie within a factor of {_SIMILAR:g}; a "
        f"gradient takes {slower:.1f} times as long",
        holds,
    )


def _collapsed(found: ImageResults) -> tuple[str, Decision]:
    said, holds = _at_equal_cost(
        found.lines["collapsed"], found.lines["joint"], "gradients", below=1
    )
    return f"RMSE over that of joint CT by NUTS: {said}", holds


CLAIMS: tuple[tuple[Claim, tuple[str, ...], Judge], ...] = (
    (
        Claim("sandwich", "paper", "Long annealed runs from both ends sandwich the evidence."),
        (),
        _sandwich,
    ),
    (
        Claim("gibbs-like-ais", "paper", "Gibbs CT and AIS perform similarly at equal gradients."),
        ("gibbs", "ais"),
        _similar("gradients"),
    ),
    (
        Claim(
            "gibbs-like-ais-seconds",
            "paper",
            "Gibbs CT and AIS perform similarly at equal computing time.",
        ),
        ("gibbs", "ais"),
        _similar("seconds"),
    ),
    (
        Claim("joint-below-gibbs", "paper", "Joint CT converges less quickly than Gibbs CT."),
        ("joint-hmc", "gibbs"),
        _worse("joint-hmc", "gradients"),
    ),
    (
        Claim(
            "st-below-gibbs",
            "paper",
            "Simulated tempering, with log weights 0, is less efficient than Gibbs CT by time.",
        ),
        ("st-flat", "gibbs"),
        _worse("st-flat", "seconds"),
    ),
    (
        Claim(
            "st-index",
            "why",
            "Why simulated tempering is behind: drawing its rung takes time; at equal gradients it "
            "is like Gibbs CT.",
        ),
        ("st-flat", "gibbs"),
        _index,
    ),
    (
        Claim(
            "pilot-st-below-gibbs",
            "ours",
            "Ours: so is simulated tempering whose weights come from pilot runs.",
        ),
        ("st", "gibbs"),
        _worse("st", "seconds"),
    ),
    (
        Claim(
            "collapsed-above-joint",
            "ours",
            "Ours: collapsing the temperature makes NUTS on the path more efficient.",
        ),
        ("collapsed", "joint"),
        _collapsed,
    ),
)


def claims(results: Results) -> list[Claim]:
    """The paper's statements on each decoder, against the bounds."""
    stated = []
    for decoder in decoders(results) or ["digits"]:
        sets = image_results(results, decoder)
        for claim, needs, judge in CLAIMS:
            own = replace(
                claim, key=f"{claim.key}-{decoder}", statement=f"{claim.statement} ({decoder})"
            )
            # The largest set of images that has what the claim needs.
            usable = [found for found in sets if set(needs) <= set(found.lines)]
            lacking = () if usable else (needs if sets else ("the bounds",))
            stated.append(judged(results, own, lacking, partial(_of_set, judge, usable)))
    return stated


def _of_set(judge: Judge, usable: list[ImageResults]) -> tuple[str, Decision]:
    found = usable[0]
    measured, holds = judge(found)
    runs = min((line.error().runs for line in found.lines.values()), default=len(found.gap))
    return f"{measured} ({found.images} images, {runs} runs or more).", holds
