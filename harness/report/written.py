"""The list of files that a report has written, so that the next report removes outdated ones.

The list lies next to the pages; there is one for each form of the report.  Nothing else is ever
removed, and nothing that lies outside when symbolic links are followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from harness.errors import StoreError
from harness.files import write_text

ReportForm = Literal["html", "md"]
"""A site, or one Markdown file with its figures; neither form touches files of the other."""

_LISTS: dict[ReportForm, str] = {"html": "files-html.txt", "md": "files-md.txt"}
_FIRST_PAGES: dict[ReportForm, str] = {"html": "index.html", "md": "report.md"}
_OURS = b'<meta name="generator" content="harness">'
_BEGINNING = 4096


def record_files(folder: Path, form: ReportForm, names: Iterable[str]) -> None:
    """Record what a report wrote, and remove other files that the last one of its form wrote.

    Parameters
    ----------
    folder
        Folder of the report.
    form
        Which of the two forms was written; files of the other one stay.
    names
        Files that were written, relative to the folder.
    """
    written = set(names)
    _remove(folder, set(_recorded(folder, _LISTS[form])) - written)
    _write_list(folder, form, written)


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder whose first page is somebody's own, which a report would replace.

    Raises
    ------
    StoreError
        If that is so.
    """
    for form, page in _FIRST_PAGES.items():
        path = folder / page
        if page in _recorded(folder, _LISTS[form]) or not path.is_file():
            continue
        with path.open("rb") as file:
            begins = file.read(_BEGINNING)
        if begins.strip() and _OURS not in begins:
            raise StoreError(
                f"{path} is not a page that harness wrote, and the report would replace it: move "
                "it, or name another folder with --store"
            )


def remember_files(folder: Path, form: ReportForm, names: Iterable[str]) -> None:
    """Record what an unfinished report has written so far, without removing anything."""
    _write_list(folder, form, {*_recorded(folder, _LISTS[form]), *names})


def remove_report(folder: Path) -> int:
    """Remove what a report wrote, and folders that become empty; return the bytes freed."""
    if not _is_within(folder, folder.parent):
        return 0
    freed = sum(_remove(folder, {*_recorded(folder, each), each}) for each in _LISTS.values())
    with suppress(OSError):  # other files are in it, or it never existed
        folder.rmdir()
    return freed


def _write_list(folder: Path, form: ReportForm, names: set[str]) -> None:
    write_text(folder / _LISTS[form], "\n".join(sorted(names)) + "\n")


def _recorded(folder: Path, listed: str) -> list[str]:
    try:
        names = (folder / listed).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    # Names outside the folder are ignored, whatever the list says.
    return [name for name in names if name and ".." not in name and not name.startswith("/")]


def _is_within(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder when all symbolic links are followed."""
    return path.resolve().is_relative_to(folder.resolve())


def _remove(folder: Path, names: set[str]) -> int:
    freed = 0
    for name in names:
        path = folder / name
        # Through a symbolic link, a name in the list may lead to a file of somebody's own.
        if path.is_symlink() or not _is_within(path, folder):
            continue
        with suppress(OSError):
            size = path.lstat().st_size
            path.unlink()
            freed += size
            if path.parent != folder:
                path.parent.rmdir()  # fails unless it is empty
    return freed
