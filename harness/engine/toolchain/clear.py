"""Remove everything that the harness keeps in the cache folder, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harness.engine.toolchain.assemble import LOCK_FILES, assembly_lock
from harness.errors import ToolchainError
from harness.folders import TAG_NAME, cache_root, cannot_write, owned_folders


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, without following symbolic links."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except OSError:
                continue  # another process removed it meanwhile
    return total


def clear_cache() -> int:
    """Remove our folders (CmdStan, wheels, compiled programs) and return the bytes freed.

    The lock files in CmdStan's folder stay, because another process may be waiting for them.

    Raises
    ------
    ToolchainError
        If the cache folder is a symbolic link, holds only files of others, or is in use.
    """
    root = cache_root()
    if root.is_symlink():
        raise ToolchainError(
            f"The cache folder {root} is a symbolic link, so nothing is removed.\n"
            "Set HARNESS_CACHE to the folder it leads to and run this again."
        )
    if not root.exists():
        return 0
    folders = owned_folders()
    if not folders and root.is_dir() and any(root.iterdir()):
        raise ToolchainError(
            f"Nothing in {root} carries harness's mark, so nothing is removed.\n"
            "Check HARNESS_CACHE, or remove the folder yourself."
        )
    before = sum(map(size_of, folders))
    try:
        if any(folder.name == "cmdstan" for folder in folders):
            with assembly_lock(wait=False):
                _remove(folders)
        else:
            _remove(folders)
    except OSError as error:
        raise cannot_write(root, error) from error
    return before - sum(map(size_of, owned_folders()))


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        if folder.name != "cmdstan":
            shutil.rmtree(folder)
            continue
        for entry in folder.iterdir():
            if entry.name in (TAG_NAME, *LOCK_FILES):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
