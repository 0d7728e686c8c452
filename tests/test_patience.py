"""Work that may never return is left behind or ended, and what was finished before stays."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from stan_density import stanli
from test_user_sample import BIMODAL, BIMODAL_DATA

from harness.arrays import FloatArray
from harness.engine import short_nuts
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.patience import NeverReturned, Workers
from harness.engine.program import StanProgram
from harness.engine.stanli_apart import run_stanli_apart
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.user import sample, steps
from harness.user.tempered_form import TemperedForm

assert stanli is not None

WITH_A_LOOP = BIMODAL.replace("model {", "model { real z = 0; while (z < 1) z += 1;", 1)
ENDLESS = "parameters { real x; } model { real z = 0; while (z < 1) z -= x > 1e300; }"
SMALL = """
data { int N; array[N] vector[2] y; }
parameters { vector[2] mu; real<lower=0> sigma; }
model {
  print("0.5");
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  y ~ multi_normal(mu, diag_matrix([1, sigma]'));
}
"""
Y = [[0.5, 1.0], [-0.25, 2.0], [0.125, -1.0]]
SHORT = NutsSettings(chains=3, warmup=60, draws=40, parallel_chains=2)


def program(folder: Path, text: str) -> StanProgram:
    path = folder / "target.stan"
    path.write_text(text)
    return StanProgram(path)


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What is waited for; it comes when the test is over, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def test_work_that_returns_is_returned() -> None:
    within = Workers().within
    assert within(30, lambda: 3, "a sum") == 3
    assert within(30, lambda: None, "nothing") is None

    def fails() -> int:
        raise ValueError("for some reason")

    with pytest.raises(ValueError, match="for some reason"):
        within(30, fails, "a sum")
    assert within(30, lambda: 4, "a sum") == 4


def test_work_that_does_not_return_is_left_behind(never: threading.Event) -> None:
    workers = Workers()
    with pytest.raises(NeverReturned, match=r"a sum did not end within 0\.1 s: a solver or a loop"):
        workers.within(0.1, never.wait, "a sum")
    # Another thread does what comes next, and never gives what the first one was asked for.
    assert [workers.within(30, lambda: 5, "a sum") for _ in range(3)] == [5, 5, 5]


def test_threads_work_one_after_the_other_and_end_with_their_workers() -> None:
    def work_for_a_while() -> None:
        workers = Workers()
        used = {workers.within(30, threading.current_thread, "a name") for _ in range(20)}
        assert len(used) == 1
        assert not used & before
        # Of several callers each gets its own.
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(lambda k: workers.within(30, lambda: k**2, "a square"), range(200))
            assert list(asked) == [k**2 for k in range(200)]
        threads.extend(set(threading.enumerate()) - before)

    before, threads = set(threading.enumerate()), list[threading.Thread]()
    work_for_a_while()
    assert threads
    gc.collect()
    for each in threads:
        each.join(10)
        assert not each.is_alive()


def test_a_density_is_timed_where_a_run_will_be() -> None:
    class Timed:
        dimension, seen = 2, np.empty((0, 2))

        def at(self, point: FloatArray) -> None:
            self.seen = np.vstack([self.seen, point])

        def __call__(self, points: FloatArray) -> None:
            return None

    mode = np.random.default_rng(1).normal(50, 1, (30, 2))
    for points, center in ((mode, 50.0), (mode[:1], 50.0), (None, 0.0)):
        density = Timed()
        assert short_nuts.seconds_a_gradient(cast(BatchedDensity, density), points) > 0
        assert 1 <= len(density.seen) <= 8
        assert np.all(np.abs(density.seen - center) < 5)


@pytest.mark.parametrize(
    "inits",
    [None, 0.5, {"mu": [0.1, 0.2]}, [{"mu": np.array([0.1, k]), "sigma": 1.5} for k in range(3)]],
)
def test_a_run_in_a_process_of_its_own_is_the_same_run(inits: Any, tmp_path: Path) -> None:
    what = program(tmp_path, SMALL), {"N": 3, "y": np.array(Y)}
    own: dict[str, Any] = {"inits": inits, "inv_metric": np.diag([0.5, 0.3, 0.1])}
    here = run_stanli_nuts(*what, SHORT, 7, **own)
    shares: list[float] = []
    there = run_stanli_apart(*what, SHORT, 7, **own, follow=shares.append)
    for name in ("variables", "sample_stats"):
        ours, theirs = getattr(here, name), getattr(there, name)
        assert list(ours) == list(theirs)
        for each in ours:
            np.testing.assert_array_equal(ours[each], theirs[each])
            assert ours[each].dtype == theirs[each].dtype
    np.testing.assert_array_equal(here.step_size, there.step_size)
    np.testing.assert_array_equal(here.gradients, there.gradients)
    assert here.stan_version == there.stan_version
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_only_a_run_that_may_be_late_has_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    density = BatchedDensity(program(tmp_path, SMALL), {"N": 3, "y": np.array(Y)})
    monkeypatch.setattr(short_nuts, "seconds_a_gradient", lambda *_: 1e-3)
    settings = NutsSettings(chains=4, warmup=150, draws=100, max_treedepth=10)
    # A thousand iterations of 1,024 gradients at most take 1,024 s; 5 s are to begin in.
    assert short_nuts.with_time_limit(settings, density, 342.0) == settings
    assert short_nuts.with_time_limit(settings, density, 10.0).time_limit == 35.0
    two = replace(settings, parallel_chains=2)
    monkeypatch.setattr(short_nuts, "cores", lambda: 2)
    assert short_nuts.with_time_limit(two, density, 171.0) == two


def test_a_run_that_never_ends_is_ended(tmp_path: Path) -> None:
    settings = NutsSettings(chains=1, warmup=20, draws=4, time_limit=10)
    with pytest.raises(NeverReturned, match=r"stopped at the time limit of 10 s \(seed 3\)"):
        run_stanli_apart(program(tmp_path, ENDLESS), {}, settings, 3)


def test_errors_of_a_process_are_those_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, data = program(tmp_path, SMALL), {"N": 3, "y": Y}
    with pytest.raises(DataError, match="initial values are refused"):
        run_stanli_apart(small, data, SHORT, 7, inits={"nu": 1.0})
    with pytest.raises(DataError, match="y"):
        run_stanli_apart(small, {"N": 3}, SHORT, 7)
    crashing = tmp_path / "crash"
    crashing.write_text("#!/bin/sh\necho a word before >&2\nkill -SEGV $$\n")
    crashing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(crashing))
    with pytest.raises(SamplingError, match=r"crashed with status -11 .*said: a word before"):
        run_stanli_apart(small, data, SHORT, 7)


def test_short_runs_have_a_limit_where_they_may_never_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits = []

    def limited(_: Any, __: Any, settings: NutsSettings, *___: Any, **____: Any) -> NutsRun:
        limits.append(settings.time_limit)
        raise NeverReturned("stopped")

    monkeypatch.setattr(short_nuts, "stanli_nuts", limited)
    for text in (WITH_A_LOOP, BIMODAL):
        with pytest.raises(SamplingError, match="stopped"):
            short_nuts.run_short_nuts(
                program(tmp_path, text), BIMODAL_DATA, NutsSettings(), 1, most_seconds=5
            )
    assert limits == [15, None]


def test_a_tempered_run_that_does_not_return_costs_no_draws_of_nuts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits = []

    def stuck(self: TemperedForm, starts: Any, nuts: NutsSettings, *_: Any) -> Fit:
        limits.append(nuts.time_limit)
        raise NeverReturned("stopped at the time limit")

    def refused(*_: Any, **__: Any) -> Fit:
        raise SamplingError("not in this test")

    monkeypatch.setattr(TemperedForm, "run", stuck)
    monkeypatch.setattr(steps, "parallel_tempering", refused)
    path = tmp_path / "bimodal.stan"
    path.write_text(WITH_A_LOOP)
    result = sample(path, BIMODAL_DATA, seed=1, engine="stanli", budget=60, progress=False)
    assert len(limits) == 1
    assert limits[0] is not None
    assert 30 < limits[0] < 180
    assert result.method == "nuts_in_modes"
    assert [each for each in result.diagnosis if "stopped at the time limit" in each.sentence]
