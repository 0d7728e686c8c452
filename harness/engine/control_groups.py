"""Limits of the control groups that the process is in, on Linux: those of a container, usually."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def own_groups() -> Iterator[Path]:
    """Yield the folders of the process's control group and of those around it, innermost first.

    There are none where the kernel has no control groups of version 2.  A limit in any of them
    holds.
    """
    try:
        lines = _OWN_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    for group in (_GROUPS / own, *(_GROUPS / own).parents):
        if group.is_relative_to(_GROUPS):
            yield group


def told_by(group: Path, name: str) -> list[str]:
    """Return the words in a file of a control group; none if it has no such file."""
    try:
        return (group / name).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return []
