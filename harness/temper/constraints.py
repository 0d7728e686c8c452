"""Stan's constraints: how each is declared, and what it says about the elements that have it.

What does not depend on a constraint's bounds is in its row of :data:`CONSTRAINTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import DataError
from harness.temper.tree import Node, tag

Range = Literal["positive", "unit"]
"""0 and above, or between 0 and 1."""


@dataclass(frozen=True)
class Constraint:
    """A constraint, whatever its bounds are.

    Attributes
    ----------
    word
        Stan's type with this constraint; None if the type has the bounds behind it.
    matrix_word
        The same of a matrix, if that is another word.
    arguments
        Names of the bounds, as in ``<lower=0>``.
    sizes
        How a matrix is declared: with all its sizes, with one, or with one if it is square.
    jacobian
        Stan's function that constrains to the bounds and adds the Jacobian, without ``_jacobian``.
    free
        Whether an element may have any value.  Stan then checks nothing.
    bounded
        Whether all elements are bounded on both sides.
    together
        Whether elements are neither bounded nor free one by one.
    moving
        Whether the elements may all grow by the same amount.
    range
        What each element lies in, if that is known without the bounds.
    made_by
        Functions whose values have the constraint.
    """

    word: str | None = None
    matrix_word: str | None = None
    arguments: tuple[str, ...] = ()
    sizes: Literal["all", "one", "one if square"] = "all"
    jacobian: str | None = None
    free: bool = False
    bounded: bool = False
    together: bool = False
    moving: bool = False
    range: Range | None = None
    made_by: tuple[str, ...] = ()


CONSTRAINTS: dict[str, Constraint] = {
    "Identity": Constraint(free=True, moving=True),
    "Lower": Constraint(arguments=("lower",), jacobian="lower_bound", moving=True),
    "Upper": Constraint(arguments=("upper",), jacobian="upper_bound", moving=True),
    "LowerUpper": Constraint(
        arguments=("lower", "upper"), jacobian="lower_upper_bound", bounded=True
    ),
    **{
        name: Constraint(arguments=words, jacobian="offset_multiplier", free=True, moving=True)
        for name, words in (
            ("Offset", ("offset",)),
            ("Multiplier", ("multiplier",)),
            ("OffsetMultiplier", ("offset", "multiplier")),
        )
    },
    "Ordered": Constraint("ordered", moving=True, made_by=("sort_asc",)),
    "PositiveOrdered": Constraint("positive_ordered", range="positive"),
    "Simplex": Constraint("simplex", bounded=True, range="unit", made_by=("softmax",)),
    "UnitVector": Constraint("unit_vector", bounded=True),
    "SumToZero": Constraint("sum_to_zero_vector", "sum_to_zero_matrix", together=True),
    "Correlation": Constraint(
        "corr_matrix", sizes="one", bounded=True, made_by=("multiply_lower_tri_self_transpose",)
    ),
    "Covariance": Constraint(
        "cov_matrix",
        sizes="one",
        together=True,
        made_by=("quad_form_diag", "multiply_lower_tri_self_transpose"),
    ),
    "CholeskyCorr": Constraint(
        "cholesky_factor_corr", sizes="one", bounded=True, made_by=("cholesky_decompose",)
    ),
    "CholeskyCov": Constraint(
        "cholesky_factor_cov",
        sizes="one if square",
        together=True,
        made_by=("diag_pre_multiply", "cholesky_decompose"),
    ),
    "StochasticRow": Constraint("row_stochastic_matrix", bounded=True, range="unit"),
    "StochasticColumn": Constraint("column_stochastic_matrix", bounded=True, range="unit"),
    # Each part of a tuple has a constraint of its own.
    "TupleTransformation": Constraint(),
}
"""Stan's constraints by the name that its compiler gives them."""


def constraint_of(transformation: Node) -> Constraint:
    """Return the constraint in a declaration.

    Raises
    ------
    DataError
        If it is not in the table.
    """
    name = tag(transformation)
    if name not in CONSTRAINTS:
        raise DataError(f"the program has a constraint ({name}) that cannot be tempered")
    return CONSTRAINTS[name]
