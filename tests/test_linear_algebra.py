"""Linear algebra stays in the thread that calls it, while a user's program is sampled."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from harness.engine.linear_algebra import one_thread_of_linear_algebra
from harness.user import evidence_from_fit, sample


def threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_a_block_has_one_thread_and_gives_back_what_there_was() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert before
        if set(before) != {2}:
            pytest.skip("this machine's linear algebra has no threads of its own")
        with one_thread_of_linear_algebra():
            assert set(threads()) == {1}
        assert threads() == before


class Looked(Exception):
    """Ends a call once it has been looked at."""


def test_calls_on_programs_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(*_: Any, **__: Any) -> Any:
        seen.extend(threads())
        raise Looked

    for module, first in (("sample", "prepare"), ("given_evidence", "read_given")):
        monkeypatch.setattr(importlib.import_module(f"harness.user.{module}"), first, look)
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(Looked):
            sample("some.stan", seed=1, progress=False)
        with pytest.raises(Looked):
            evidence_from_fit("some.csv", "some.stan")
    assert set(seen) == {1}
