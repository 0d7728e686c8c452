"""CmdStanPy's logger: quiet while any run is on, in any thread or process, and as it was after."""

from __future__ import annotations

import logging
import threading

import cmdstanpy

from harness.engine.nuts import quiet_cmdstanpy


def test_the_last_of_overlapping_runs_gives_the_voice_back() -> None:
    logger = cmdstanpy.utils.get_logger()
    before = logger.level
    inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with quiet_cmdstanpy():
            inside.set()
            go_on.wait(10)
        ended.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with quiet_cmdstanpy():
        go_on.set()
        assert ended.wait(10)
        assert logger.level == logging.CRITICAL
    thread.join()
    assert logger.level == before
