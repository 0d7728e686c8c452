"""``harness sample --tempered``: a tempered program that its reader has edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_user_sample import BIMODAL, BIMODAL_DATA, bimodal_truth, check_evidence, write

from harness.cli import main
from harness.errors import CompileError, DataError
from harness.temper import Variant, temper
from harness.user import UserFit, sample

LIKELIHOOD = "normal_lpdf(y | square_a + b, s)"


def edited(paths: tuple[Path, Path], form: Variant, old: str, new: str) -> Path:
    """A tempered program with one edit, beside the original."""
    text = temper(paths[0], method=form).text
    assert old in text
    path = paths[0].with_name(f"edited_{form}.stan")
    path.write_text(text.replace(old, new))
    return path


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path, "bimodal", BIMODAL, BIMODAL_DATA)


def run(paths: tuple[Path, Path], tempered: Path, *, draws: int = 200) -> UserFit:
    settings = {"seed": 1, "draws": draws, "warmup": draws, "engine": "stanli"}
    return sample(*paths, tempered=tempered, progress=False, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["collapsed_tempering", "joint_tempering", "pseudo_extended"])
def test_the_edited_program_runs_and_is_kept(paths: tuple[Path, Path], form: Variant) -> None:
    by_hand = "(-0.5 * square((y - square_a - b) / s) - log(s) - 0.5 * log(2 * pi()))"
    mine = edited(paths, form, LIKELIHOOD, by_hand)
    result = run(paths, mine, draws=2000)
    assert result.method == form
    assert not any("edited" in each.sentence for each in result.diagnosis)
    log_evidence, below = bimodal_truth()
    check_evidence(result, log_evidence, 0.3)
    share = result.fit.expectation(lambda draws: draws["a"] < 0)
    assert abs(share.value - below) < 4 * share.mcse
    assert list(result.posterior) == ["a", "b", "square_a", "y_rep"]
    kept = dict(json.loads(result.tree.attrs["programs"]))
    assert by_hand in kept[f"bimodal-{form}.stan"]
    assert kept["bimodal.stan"].rstrip() == BIMODAL.rstrip()


def test_another_density_is_reported(paths: tuple[Path, Path]) -> None:
    mine = edited(paths, "collapsed_tempering", LIKELIHOOD, "student_t_lpdf(y | 4, square_a, s)")
    found = [each for each in run(paths, mine).diagnosis if "edited" in each.sentence]
    assert len(found) == 1
    assert "log densities" in found[0].sentence


def test_programs_that_cannot_be_run_in_its_place(paths: tuple[Path, Path]) -> None:
    header = temper(paths[0]).text.partition("functions")[0]
    for old, new, message in (
        (header, "", "keep the first lines"),
        ("real a;", "real a;\n  real c;", "adds c among its parameters"),
        ("real y;", "vector[1] y;", "changes y among its data"),
        ("vector[2] log_weight", "vector[2] w", "no longer generates log_weight"),
        ("--temper likelihood", "--temper all", "was written with --temper all"),
    ):
        mine = edited(paths, "collapsed_tempering", old, new)
        if "vector[1]" in new:
            mine.write_text(
                mine.read_text().replace(LIKELIHOOD, LIKELIHOOD.replace("y |", "y[1] |"))
            )
        with pytest.raises(DataError, match=message):
            run(paths, mine)
    mine = edited(paths, "collapsed_tempering", "real a;", "real a")
    with pytest.raises(CompileError):
        run(paths, mine)
    mine = edited(paths, "prior", "real a;", "real a;")
    with pytest.raises(DataError, match="no method of harness sample runs"):
        run(paths, mine)


def test_another_original_or_method_is_refused(paths: tuple[Path, Path]) -> None:
    mine = edited(paths, "joint_tempering", "real a;", "real a;")
    arguments = ["sample", *map(str, paths[:1]), "--data", str(paths[1]), "--tempered", str(mine)]
    other = CliRunner().invoke(main, [*arguments, "--method", "pseudo_extended"])
    assert other.exit_code == 1
    assert "has the form joint_tempering, not pseudo_extended" in other.stderr
    paths[0].write_text(BIMODAL.replace("normal(0.5, 3)", "normal(0.5, 4)"))
    other = CliRunner().invoke(main, arguments)
    assert other.exit_code == 1
    assert "was written from another version" in other.stderr
