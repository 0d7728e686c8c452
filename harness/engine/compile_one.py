"""Compile one Stan program with CmdStanPy, as a process of its own.

``python -m harness.engine.compile_one SOURCE INCLUDE_PATH...``, with ``$CMDSTAN`` set.  It is a
process because CmdStanPy changes the working folder while make runs, which threads would see.
"""

from __future__ import annotations

import logging
import sys

import cmdstanpy


def main(source: str, *include_paths: str) -> int:
    """Compile; on failure print what Stan or the C++ compiler said and return 1."""
    cmdstanpy.utils.get_logger().setLevel(logging.CRITICAL)
    try:
        cmdstanpy.compile_stan_file(source, stanc_options={"include-paths": list(include_paths)})
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
