"""Errors name the user's program, and not a form of it in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import DataError, SamplingError
from harness.user import sample
from harness.user.clock import Clock
from harness.user.prepare import prepare
from harness.user.program import UserProgram

PROGRAM = """data {
  real y;
}
parameters {
  real x;
}
model {
  x ~ normal(0, 3);
  y ~ normal(square(x), 1);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> UserProgram:
    path = tmp_path_factory.mktemp("named") / "squares.stan"
    path.write_text(PROGRAM, encoding="utf-8")
    return prepare(
        path, {"y": 2.0}, "likelihood", (), "stanli", Clock(1, show=False), tempered="yes"
    )


def test_an_error_names_the_form(program: UserProgram) -> None:
    own = program.model.program("collapsed_tempering").name
    named = r"squares\.stan, form collapsed_tempering: too slow"
    with pytest.raises(SamplingError, match=named), program.named_errors():
        raise SamplingError(f"{own}: too slow")


@pytest.mark.parametrize("form", ["collapsed_tempering", "collapsed_tempering_zero_likelihood"])
def test_a_form_that_stanli_does_not_support_has_a_way_out(program: UserProgram, form: str) -> None:
    own = program.model.program(form).name
    with pytest.raises(DataError) as raised, program.named_errors():
        raise DataError(f"{own}: stanli compile: an integer is not known at compile time")
    assert str(raised.value) == (
        f"{program.path}: stanli does not support the form {form} of this program; use --engine "
        "cmdstan. It says: an integer is not known at compile time"
    )


def test_an_index_that_data_make_wrong_is_no_fault_of_stanli(tmp_path: Path) -> None:
    """It reads the data as it compiles, and finds the index then."""
    path = tmp_path / "index.stan"
    path.write_text(
        "data { int N; }\nparameters { real x; }\ntransformed parameters {\n  vector[N] v;\n"
        "  for (n in 1 : N + 1) v[n] = n * x;\n}\nmodel { x ~ std_normal(); v ~ normal(0, 1); }\n",
        encoding="utf-8",
    )
    with pytest.raises(DataError, match=r"index\.stan: with these data an index or a size is"):
        sample(path, {"N": 3}, seed=1, engine="stanli", progress=False)
