"""Whether constraints of transformed parameters hold wherever the parameters are allowed."""

from __future__ import annotations

from harness.temper.syntax import Syntax


def may_cut(syntax: Syntax) -> list[str]:
    """Names of transformed parameters whose constraint is not certain to hold."""
    return []
