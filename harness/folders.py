"""Where things are: the Stan programs, data and experiments we ship, and the cache folder.

In a checkout they are the top-level folders beside the package; in an installed wheel they
are copies inside it.  Nothing outside the cache folder and the folder of results that the
user names is ever written.

Inside the cache folder each part of the harness has one folder of its own, made by
:func:`cache_folder` and marked with a ``CACHEDIR.TAG``: only folders that carry our tag are ever
removed, and programs that make backups know the tag and skip them.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

import platformdirs

from harness.errors import ToolchainError
from harness.progress import say

_PACKAGE = Path(__file__).resolve().parent
_BUNDLED = "_shipped"

TAG_NAME = "CACHEDIR.TAG"
# The first line is fixed by the Cache Directory Tagging Specification, the second one is ours.
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# A cache folder made by harness; `harness doctor --clear-cache` removes it.\n"
)


def shipped(folder: str) -> Path:
    """Return the folder ``stan``, ``data`` or ``experiments`` that this installation uses."""
    bundled = _PACKAGE / _BUNDLED / folder
    return bundled if bundled.is_dir() else _PACKAGE.parent / folder


def shipped_package(folder: str) -> str:
    """Return the name by which a folder that :func:`shipped` gives is imported, if it has code.

    In a wheel it lies inside our package, because ``experiments`` is too common a name for one that
    is installed at the top.
    """
    bundled = (_PACKAGE / _BUNDLED / folder).is_dir()
    return f"{_PACKAGE.name}.{_BUNDLED}.{folder}" if bundled else folder


def cache_root() -> Path:
    """Return the folder that we own for CmdStan and compiled programs.

    ``$HARNESS_CACHE`` overrides the user's cache folder.  The folder need not exist yet.
    Symbolic links are kept, so that whoever removes things can see them.
    """
    override = os.environ.get("HARNESS_CACHE")
    if override:
        return Path(override).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("harness", appauthor=False))


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` in the cache, made and tagged as ours if it was not there.

    Raises
    ------
    ToolchainError
        If it cannot be made, or if something that we did not make has its name.
    """
    folder = cache_root() / name
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Made under another name with its tag inside, then renamed: when two processes get
            # here at once, one rename wins and neither ever sees an untagged folder.
            fresh = Path(tempfile.mkdtemp(prefix=f".new-{name}-", dir=folder.parent))
            try:
                (fresh / TAG_NAME).write_text(_TAG_TEXT, encoding="ascii")
                fresh.chmod(0o755)
                fresh.rename(folder)
            except OSError:
                shutil.rmtree(fresh, ignore_errors=True)
                if not folder.exists():
                    raise
    except OSError as error:
        raise cannot_write(folder, error) from error
    if not is_owned(folder):
        raise ToolchainError(
            f"{folder} is in the way: harness did not make it and leaves it alone.\n"
            "Move it, or set HARNESS_CACHE to an empty folder."
        )
    warn_of_others(folder)
    return folder


def folder_of_programs(name: str, digest: str, path: Path) -> Path:
    """Return a folder in the cache for the programs that we write from a user's; it may not exist.

    Its own name is that of the user's program, so that messages about what is in it (see
    :attr:`harness.engine.program.StanProgram.name`) name something that the user knows.

    Parameters
    ----------
    name
        What kind of programs they are: a folder for :func:`cache_folder`.
    digest
        Hash of all that they depend on.
    path
        The user's program.

    Raises
    ------
    ToolchainError
        As :func:`cache_folder`.
    """
    # Compilers and make see this name.
    word = re.sub(r"\W+", "_", path.stem, flags=re.ASCII)[:60] or "program"
    return cache_folder(name) / digest[:32] / word


def is_owned(folder: Path) -> bool:
    """Tell whether :func:`cache_folder` made this folder; a symbolic link to it does not count."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        return (folder / TAG_NAME).read_text(encoding="ascii") == _TAG_TEXT
    except (OSError, UnicodeDecodeError):
        return False


def owned_folders() -> list[Path]:
    """Return the folders in the cache that :func:`cache_folder` made, sorted by name."""
    root = cache_root()
    return sorted(filter(is_owned, root.iterdir())) if root.is_dir() else []


def warn_of_others(folder: Path) -> None:
    """Warn, once for each folder, if other users can change what is in it.

    Programs in the cache are executed, and results in a store are believed.
    """
    why = changed_by_others(folder)
    if why is not None and folder not in _WARNED:
        _WARNED.add(folder)
        say(
            f"warning: {why}, so others can change what harness keeps there and runs: "
            f"`chmod go-w` it, or choose a folder of your own"
        )


_WARNED: set[Path] = set()


def changed_by_others(folder: Path) -> str | None:
    """Say why users other than this one and root can change a folder's content; None if they can't.

    Folders above it count as well, unless only the owner of an entry can replace it there (as in
    ``/tmp``).  A group counts if this user's primary group is another one or it has other members.
    """
    if os.name == "nt":
        return None
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        try:
            found = place.stat()
        except OSError:
            continue
        if found.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to another user"
        if place != folder and found.st_mode & stat.S_ISVTX:
            continue
        if found.st_mode & stat.S_IWOTH:
            return f"everybody can write to {place}"
        if found.st_mode & stat.S_IWGRP and _has_others(found.st_gid):
            return f"the members of its group can write to {place}"
    return None


def _has_others(group: int) -> bool:
    import grp
    import pwd

    if group == 0:
        return False
    try:
        me = pwd.getpwuid(os.geteuid())
        return me.pw_gid != group or any(each != me.pw_name for each in grp.getgrgid(group).gr_mem)
    except KeyError:  # a user or a group without a name
        return True


def cannot_write(where: Path, error: OSError) -> ToolchainError:
    """Return the error to raise when the operating system refuses to write in the cache."""
    return ToolchainError(
        f"Cannot write in the cache folder {where}: {error.strerror or error}.\n"
        "Set HARNESS_CACHE to a folder that you can write in and that has room."
    )
