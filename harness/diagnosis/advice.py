"""What to try if a check fails: in words of the library, or in options of ``harness sample``.

Somebody who calls :mod:`harness.forms` chooses a base, a g and a guess at log Z.  Whoever runs
``harness sample`` on a program has none of these, but a budget, a method and settings of NUTS.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.engine.nuts import ADAPTS_METRIC
from harness.fit import Fit

_ATTRIBUTE = "advice"


@dataclass(frozen=True)
class Advice:
    """What to try, each part as whole sentences.

    Attributes
    ----------
    no_path
        If chains of plain NUTS, which follow no path, disagree.
    better_path
        If the path itself is at fault.
    heavy_weights
        If a few draws have most of the weight.
    little_near_target
        If few draws of a tempered run are near the target, where weights are.
    many_more_draws
        If next to nothing can be estimated.
    sharp
        If trajectories diverge.
    deep
        If trajectories are cut short.
    longer_warmup
        If they are cut short after a warm-up in which Stan adapts no metric.
    unseen
        To find modes that no chain has visited.
    """

    no_path: str
    better_path: str
    heavy_weights: str
    little_near_target: str
    many_more_draws: str
    sharp: str
    deep: str
    longer_warmup: str
    unseen: str


OF_LIBRARY = Advice(
    no_path=(
        "Take a longer warm-up and more draws. If the chains still disagree, NUTS does not move "
        "between modes: temper the target."
    ),
    better_path=(
        "Try a base nearer to the target, a better guess at log Z, a g with more mass where the "
        "path has few draws, or starting points in every mode. Then try a longer run."
    ),
    heavy_weights="Take a base nearer to the target, or many more draws.",
    little_near_target=("Take a base nearer to the target, or a g with more mass near beta = 1."),
    many_more_draws=(
        "Take many more draws. If a few weights dominate, take a base nearer to the target."
    ),
    sharp="Raise target_accept, or reparametrise the model.",
    deep="If draws are correlated, raise max_treedepth.",
    longer_warmup=f"Raise warmup to {ADAPTS_METRIC} or more: in fewer Stan adapts no metric.",
    unseen="Start chains in different places to look for one.",
)
_TIME = "Give it more time (--budget) and more draws (--draws)"
_PRIORS = "If that does not help, give vague parameters narrower priors, or take another --method."
OF_COMMAND = Advice(
    no_path=(
        "Take a longer warm-up and more draws (--warmup, --draws). If the chains still disagree, "
        "NUTS does not move between modes: take --method auto, and give it more time (--budget)."
    ),
    better_path=f"{_TIME}. {_PRIORS}",
    heavy_weights=f"{_TIME}. {_PRIORS}",
    little_near_target=f"{_TIME}. {_PRIORS}",
    many_more_draws=f"{_TIME}.",
    sharp="Raise --target-accept, or reparametrise the model.",
    deep="If draws are correlated, raise --max-treedepth.",
    longer_warmup=f"Raise --warmup to {ADAPTS_METRIC} or more: in fewer Stan adapts no metric.",
    unseen="With another --seed the search looks for one in other places.",
)


def give_options(fit: Fit) -> None:
    """Let the diagnosis of a fit name options of ``harness sample``."""
    fit.tree.attrs[_ATTRIBUTE] = "command"


def advice_for(fit: Fit) -> Advice:
    """Return what can be tried for a fit."""
    return OF_COMMAND if fit.tree.attrs.get(_ATTRIBUTE) == "command" else OF_LIBRARY
