"""The list of files that a report has written, so that the next one removes what is out of date.

It lies beside the pages, one list for each form of the report.  Nothing else is ever removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from harness.files import write_text

ReportForm = Literal["html", "md"]
"""A site, or one Markdown file with figures beside it; one does not touch the other's files."""

_LISTS: dict[ReportForm, str] = {"html": "files-html.txt", "md": "files-md.txt"}


def record_files(folder: Path, form: ReportForm, names: Iterable[str]) -> None:
    """Remember what a report wrote, and remove what the last one of its form wrote besides.

    Parameters
    ----------
    folder
        Folder of the report.
    form
        Which of the two forms was written; the other one stays.
    names
        Files written, relative to it.
    """
    written = set(names)
    _remove(folder, set(_recorded(folder, _LISTS[form])) - written)
    _write_list(folder, form, written)


def remember_files(folder: Path, form: ReportForm, names: Iterable[str]) -> None:
    """Remember what an unfinished report has written so far, and remove nothing."""
    _write_list(folder, form, {*_recorded(folder, _LISTS[form]), *names})


def remove_report(folder: Path) -> int:
    """Remove what a report wrote, and folders that this leaves empty; return the bytes freed."""
    freed = sum(_remove(folder, {*_recorded(folder, each), each}) for each in _LISTS.values())
    with suppress(OSError):  # something else is in it, or it was never there
        folder.rmdir()
    return freed


def _write_list(folder: Path, form: ReportForm, names: set[str]) -> None:
    write_text(folder / _LISTS[form], "\n".join(sorted(names)) + "\n")


def _recorded(folder: Path, listed: str) -> list[str]:
    try:
        names = (folder / listed).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    # Nothing outside the folder, whatever the list says.
    return [name for name in names if name and ".." not in name and not name.startswith("/")]


def _remove(folder: Path, names: set[str]) -> int:
    freed = 0
    for name in names:
        path = folder / name
        with suppress(OSError):
            freed += path.lstat().st_size
            path.unlink()
            if path.parent != folder:
                path.parent.rmdir()  # once it is empty
    return freed
