"""Which packages the peers need, whether they are installed, and how to install them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from harness.errors import ToolchainError

PEERS: Mapping[str, str] = {
    "dynesty": "dynesty",
    "blackjax_smc": "blackjax",
    "blackjax_nested": "blackjax",
}
"""Package that each way of running a peer needs; blackjax brings JAX along."""
HOW_TO_INSTALL = "in a checkout: python -m pip install '.[peers]'"


def is_installed(package: str) -> bool:
    """Whether a package is installed; it is not imported."""
    return importlib.util.find_spec(package) is not None


def require(package: str) -> None:
    """Refuse to go on without a package.

    Raises
    ------
    ToolchainError
        If it is not installed.
    """
    if not is_installed(package):
        raise ToolchainError(f"the package {package} is not installed: {HOW_TO_INSTALL}")


def left_out() -> str:
    """Say which peers are not installed, and how to install them; empty if all are."""
    absent = [name for name in dict.fromkeys(PEERS.values()) if not is_installed(name)]
    return f"{' and '.join(absent)}: not installed ({HOW_TO_INSTALL})." if absent else ""
