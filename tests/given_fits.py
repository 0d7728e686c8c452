"""Fits as other people have them: runs of NUTS, and such runs as CSV files of CmdStan's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.nuts import SAMPLE_STATS, NutsRun, NutsSettings
from harness.engine.program import StanProgram
from harness.engine.stanli_nuts import run_stanli_nuts
from harness.fit import Fit, build_fit
from harness.user.clock import quiet


def nuts_run(
    path: Path, data: Mapping[str, Any], *, seed: int, inits: Any = None, draws: int = 1000
) -> NutsRun:
    """Run NUTS with four chains on a program."""
    settings = NutsSettings(chains=4, warmup=500, draws=draws)
    with quiet():
        return run_stanli_nuts(StanProgram(path), data, settings, seed, inits=inits)


def as_fit(run: NutsRun, names: Sequence[str]) -> Fit:
    """Return a run as a fit that holds only these variables."""
    return build_fit(
        posterior={name: run.variables[name] for name in names},
        extended=None,
        sample_stats=run.sample_stats,
        constant_data={},
        attrs={"method": "nuts", "settings": {}},
    )


def fit_of(draws: Mapping[str, FloatArray]) -> Fit:
    """Return a fit of draws alone, without statistics of a sampler."""
    shape = next(iter(draws.values())).shape[:2]
    return build_fit(
        posterior=dict(draws),
        extended=None,
        sample_stats={"acceptance_rate": np.ones(shape)},
        constant_data={},
        attrs={"method": "nuts", "settings": {}},
    )


def write_csv(
    folder: Path, run: NutsRun, names: Sequence[str], *, digits: int = 8, warmup: int = 0
) -> list[Path]:
    """Write a run as CmdStan does, a file for each chain.

    Parameters
    ----------
    folder
        Where the files are written.
    run
        The run.
    names
        Variables in the files, in order.
    digits
        Significant digits.
    warmup
        Draws at the beginning that count as saved warm-up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns, header = [], []
    for theirs, (ours, _) in SAMPLE_STATS.items():
        columns.append(run.sample_stats[ours].astype(float))
        header.append(theirs)
    for name in names:
        value = run.variables[name]
        for index in np.ndindex(*reversed(value.shape[2:])):
            own = tuple(reversed(index))
            columns.append(value[(slice(None), slice(None), *own)])
            header.append(".".join([name, *(str(i + 1) for i in own)]))
    table = np.stack(columns, axis=-1)
    paths = []
    for chain, rows in enumerate(table, start=1):
        path = folder / f"chain_{chain}.csv"
        settings = {
            "stan_version_major": "2",
            "method": "sample (Default)",
            "num_samples": str(len(rows) - warmup),
            "num_warmup": str(warmup or 500),
            "save_warmup": "true" if warmup else "false (Default)",
            "thin": "1 (Default)",
        }
        lines = [f"# {key} = {value}" for key, value in settings.items()]
        lines.append(",".join(header))
        for number, row in enumerate(rows):
            if number == warmup:
                lines += ["# Adaptation terminated", "# Step size = 0.9"]
            lines.append(",".join(f"{value:.{digits}g}" for value in row))
        lines += ["# ", "#  Elapsed Time: 0.01 seconds (Warm-up)"]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return paths
