"""Every page of a smoke run in a real browser: nothing missing, nothing cut off, all readable.

Run by ``nox -s pages``; it needs Chromium, which Playwright is told the place of, so that it
downloads none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from test_diagnosis import pseudo_fit, tempered_fit

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
# A4 less margins of 12 mm, at 96 pixels an inch.
PAPER = {"width": 703, "height": 1032}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a smoke run, and beside it pages of fits of the other kinds."""
    store = tmp_path_factory.mktemp("store")
    command = ["run", "mixture", "--profile", "smoke", "--store", str(store)]
    subprocess.run([sys.executable, "-m", "harness", *command], check=True)
    report = store / "report"
    tempered_fit().report(report / "alone" / "continuous-tempering.html")
    pseudo_fit(num=6).report(report / "alone" / "pseudo-extended.html")
    return report


@pytest.fixture(scope="session")
def pages(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.html"))
    assert len(found) == 2 + 4 + 2
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--disable-dev-shm-usage"])
        yield opened
        opened.close()


def visit(
    browser: playwright.Browser, path: Path, size: dict[str, int], **options: str
) -> tuple[playwright.Page, list[str]]:
    """Open a page; return it with what its console and its requests say is wrong."""
    page = browser.new_page(viewport=size, **options)
    wrong: list[str] = []
    page.on("console", lambda m: m.type in ("error", "warning") and wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url[:99]}"))
    page.on(
        "request",
        lambda r: r.url.startswith(("file:", "data:")) or wrong.append(f"network: {r.url[:99]}"),
    )
    page.goto(path.as_uri(), wait_until="load")
    return page, wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_whole_and_pass_the_accessibility_checks(
    browser: playwright.Browser, pages: list[Path], scheme: str
) -> None:
    for path in pages:
        page, wrong = visit(browser, path, DESK, color_scheme=scheme)
        assert wrong == [], path
        empty = page.evaluate("[...document.images].filter(i => !i.naturalWidth).length")
        assert empty == 0, path
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
        page.close()


@pytest.mark.parametrize(("media", "size"), [("screen", PHONE), ("print", PAPER)])
def test_no_page_is_wider_than_a_phone_or_a_sheet(
    browser: playwright.Browser, pages: list[Path], media: str, size: dict[str, int]
) -> None:
    for path in pages:
        page, _ = visit(browser, path, size)
        page.emulate_media(media=media)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{path}: {width} px"
        page.close()


def test_links_resolve(browser: playwright.Browser, pages: list[Path]) -> None:
    reached = {pages[0].parent / "index.html"}
    for path in pages:
        page, _ = visit(browser, path, DESK)
        targets = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
        for target in map(urlsplit, targets):
            assert target.scheme == "file", target
            place = Path(unquote(target.path))
            assert place in pages, f"{path} links to {place}"
            reached.add(place)
            if target.fragment:
                assert place == path
                assert page.locator(f"#{target.fragment}").count() == 1
        page.close()
    assert {path for path in pages if path.parent.name != "alone"} <= reached


def test_pages_are_small(pages: list[Path]) -> None:
    assert max(path.stat().st_size for path in pages) < 5e6
