"""Work on chains in threads: what it returns, how far it is, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from harness.engine import threads
from harness.engine.threads import in_threads


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_SECONDS_A_LOOK", 0.001)
    monkeypatch.setattr(threads, "cores", lambda: 2)


def test_each_chain_has_its_own_result() -> None:
    assert in_threads(lambda chain, _: 10 * chain, 5, each=1) == [0, 10, 20, 30, 40]
    assert in_threads(lambda chain, _: chain, 0, each=3) == []


def test_the_caller_hears_how_far_it_is() -> None:
    """In its own thread, and not beyond the whole."""
    heard: list[tuple[float, int]] = []
    go = threading.Event()

    def work(_: int, count: Callable[[], None]) -> None:
        for _ in range(4):
            count()
        go.wait(10)

    def follow(share: float) -> None:
        heard.append((share, threading.get_ident()))
        if share == 1:
            go.set()

    in_threads(work, 2, each=4, follow=follow)
    assert heard[-1][0] == 1
    assert {thread for _, thread in heard} == {threading.get_ident()}


def endless(ended: list[int]) -> Callable[[int, Callable[[], None]], None]:
    def work(chain: int, count: Callable[[], None]) -> None:
        try:
            while True:
                time.sleep(0.001)
                count()
        finally:
            ended.append(chain)

    return work


def test_an_interrupted_call_ends_all_chains() -> None:
    ended: list[int] = []

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(endless(ended), 3, each=1, follow=stop)
    assert {0, 1} <= set(ended)
    assert threading.active_count() == 1


def test_a_failure_of_one_chain_ends_the_others_and_is_told() -> None:
    ended: list[int] = []
    others = endless(ended)

    def work(chain: int, count: Callable[[], None]) -> None:
        if chain == 1:
            raise ValueError("of the second")
        others(chain, count)

    with pytest.raises(ValueError, match="of the second"):
        in_threads(work, 2, each=1)
    assert ended == [0]
