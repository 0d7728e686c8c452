"""Read the CSV files that CmdStan's sampler writes, whoever ran it, for draws that somebody has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import parse_header

from harness.arrays import FloatArray
from harness.engine.nuts import SAMPLE_STATS
from harness.engine.stan_csv import EXACT
from harness.errors import DataError

_SETTING = re.compile(r"^#\s*(\w+)\s*=\s*(\S+)")
_TRUE = ("1", "true")


@dataclass(frozen=True)
class SamplerDraws:
    """Draws of one run of CmdStan's sampler; arrays start with axes (chain, draw).

    Attributes
    ----------
    variables
        Every variable of the program in the files, by name.
    sample_stats
        Sampler statistics under ArviZ's names.
    settings
        What the first file says of the run, by CmdStan's names, as text.
    """

    variables: dict[str, FloatArray]
    sample_stats: dict[str, FloatArray]
    settings: dict[str, str]


def read_sampler_csv(paths: Sequence[Path]) -> SamplerDraws:
    """Read the chains of a run, a file each.

    Parameters
    ----------
    paths
        Files of CmdStan's sampler, from CmdStan itself, CmdStanPy or CmdStanR.

    Raises
    ------
    DataError
        If a file is missing or is none of the sampler's, a chain is not complete, or the files have
        different columns or numbers of draws.
    """
    chains = [_read(path) for path in paths]
    header, first, settings = chains[0]
    for path, (other, draws, _) in zip(paths, chains, strict=True):
        if other != header:
            raise DataError(
                f"{path} has other columns than {paths[0]}: give the chains of one run of one "
                "program"
            )
        if len(draws) != len(first):
            raise DataError(
                f"{path} has {len(draws):,} draws and {paths[0]} has {len(first):,}: give complete "
                "chains of one run"
            )
    table = np.stack([draws for _, draws, _ in chains])
    columns = header.split(",")
    stats: dict[str, FloatArray] = {
        ours: table[..., columns.index(theirs)].astype(kind)
        for theirs, (ours, kind) in SAMPLE_STATS.items()
        if theirs in columns
    }
    variables = {
        name: np.ascontiguousarray(variable.extract_reshape(table), dtype=np.float64)
        for name, variable in parse_header(header).items()
        if not name.endswith("__") and variable.type.name == "SCALAR"
    }
    return SamplerDraws(variables, stats, settings)


def _read(path: Path) -> tuple[str, FloatArray, dict[str, str]]:
    settings: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8") as file:
            header = ""
            for line in file:
                if not line.startswith("#"):
                    header = line.strip()
                    break
                found = _SETTING.match(line)
                if found is not None:
                    settings.setdefault(found[1], found[2])
            if settings.get("method", "sample") != "sample":
                raise DataError(
                    f"{path} is a file of CmdStan's method {settings['method']}, not of its "
                    "sampler: log Z needs draws of the posterior"
                )
            if not header.startswith("lp__") or "num_samples" not in settings:
                raise DataError(f"{path} is not a CSV file of CmdStan's sampler")
            table = pd.read_csv(
                file, header=None, comment="#", dtype=np.float64, low_memory=False, **EXACT
            )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} has no draws: did CmdStan finish?") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # what is not text, and rows that are cut off
        said = str(error).splitlines()[0]
        raise DataError(f"{path} is damaged or incomplete ({said})") from error
    draws = table.to_numpy()
    if draws.shape[1] != header.count(",") + 1 or not np.all(np.isfinite(draws[:, 0])):
        raise DataError(f"{path} is damaged or incomplete: did CmdStan finish?")
    thin = int(settings.get("thin", "1"))
    wanted = -(-int(settings["num_samples"]) // thin)
    saved_warmup = settings.get("save_warmup", "0") in _TRUE
    warmup = -(-int(settings.get("num_warmup", "0")) // thin) if saved_warmup else 0
    if len(draws) != warmup + wanted:
        raise DataError(
            f"{path} has {max(len(draws) - warmup, 0):,} of {wanted:,} draws: wait until CmdStan "
            "has finished, or run the chain again"
        )
    return header, draws[warmup:], settings
