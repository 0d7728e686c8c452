"""Long runs of NUTS tell how far they are, with either engine, and draw the same meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.engine import iterations
from harness.engine.iterations import Iterations, followed
from harness.engine.nuts import NutsSettings, run_nuts
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.forms.common import compiled_variant
from harness.models.gaussian_mixture import GaussianMixture

LINE = GaussianMixture(np.array([0.35, 0.65]), np.array([[-1.2], [1.4]]), np.array([0.7, 1.0]))
MODEL = LINE.model("line", lower=-12, upper=12)
assert stanli is not None
SETTINGS = NutsSettings(chains=2, warmup=150, draws=250)


def test_the_share_is_that_of_all_chains() -> None:
    shares: list[float] = []
    heard = Iterations(2, shares.append)
    print("Chain [1] Iteration:    1 / 2000 [  0%]  (Warmup)", file=heard)
    print("Chain [2] Iteration: 1000 / 2000 [ 50%]  (Warmup)", file=heard)
    print("Chain [2] Elapsed Time: 0.1 seconds (Warm-up)", file=heard)
    print("Chain [1] Iteration: 2000 / 2000 [100%]  (Sampling)", file=heard)
    assert shares == [0.00025, 0.25025, 0.75]


def test_chains_that_start_anew_do_not_go_back() -> None:
    shares: list[float] = []
    heard = Iterations(1, shares.append)
    for done in (600, 100, 700):
        heard.count(f"Iteration: {done} / 1000 [..]", 1)
    assert shares == [0.6, 0.7]


def test_files_are_read_while_a_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CmdStanPy writes one file per process, whose name ends with the chain's number."""
    monkeypatch.setattr(iterations, "_SECONDS_A_LOOK", 0.01)
    shares: list[float] = []
    far = threading.Event()

    def follow(share: float) -> None:
        shares.append(share)
        if share == 0.75:
            far.set()

    with followed(tmp_path, 2, follow):
        (tmp_path / "p_1-stdout.txt").write_text("Iteration: 100 / 100 [100%]  (Sampling)\n")
        (tmp_path / "p_2-stdout.txt").write_text("Iteration:  50 / 100 [ 50%]  (Warmup)\n")
        assert far.wait(10)
    (tmp_path / "p_2-stdout.txt").write_text("Iteration: 100 / 100 [100%]  (Sampling)\n")
    assert shares[-1] == 0.75


def test_following_stanli_changes_no_draw(capsys: pytest.CaptureFixture[str]) -> None:
    shares: list[float] = []
    program = MODEL.program("target")
    plain = run_stanli_nuts(program, MODEL.data, SETTINGS, 3)
    followed_run = run_stanli_nuts(program, MODEL.data, SETTINGS, 3, follow=shares.append)
    assert np.array_equal(plain.variables["x"], followed_run.variables["x"])
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    assert len(shares) > 50
    assert capsys.readouterr().out == ""


@pytest.mark.compiled
def test_following_cmdstan_changes_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "_SECONDS_A_LOOK", 0.01)
    shares: list[float] = []
    compiled = compiled_variant(MODEL, "target")
    settings = NutsSettings(chains=2, warmup=1000, draws=4000)
    plain = run_nuts(compiled, MODEL.data, settings, 3)
    followed_run = run_nuts(compiled, MODEL.data, settings, 3, follow=shares.append)
    assert np.array_equal(plain.variables["x"], followed_run.variables["x"])
    assert shares == sorted(set(shares))
    assert 0 < shares[0] < shares[-1] <= 1
