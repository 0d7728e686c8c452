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
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from test_diagnosis import pseudo_fit, tempered_fit
from test_hard_experiment import page_with_marks

from harness.report import FitReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

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
    FitReport(tempered_fit()).save(report / "alone" / "continuous-tempering.html")
    FitReport(pseudo_fit(num=6)).save(report / "alone" / "pseudo-extended.html")
    (report / "alone" / "marks.html").write_text(page_with_marks("continuous-tempering.html"))
    return report


@pytest.fixture(scope="session")
def pages(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.html"))
    assert len(found) == 2 + 4 + 3
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--disable-dev-shm-usage"])
        yield opened
        opened.close()


def visit(
    browser: Browser, path: Path, size: dict[str, int], **options: str
) -> tuple[Page, list[str]]:
    """Open a page; return it with what its console and its requests say is wrong."""
    page = browser.new_page(viewport=size, **options)
    wrong: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            wrong.append(message.text)

    def on_request(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            wrong.append(f"network: {request.url[:99]}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", on_request)
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url[:99]}"))
    # It takes a second; a machine that does much else may give the browser next to nothing.
    page.goto(path.as_uri(), wait_until="load", timeout=180_000)
    return page, wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_whole_and_pass_the_accessibility_checks(
    browser: Browser, pages: list[Path], scheme: str
) -> None:
    for path in pages:
        page, wrong = visit(browser, path, DESK, color_scheme=scheme)
        assert wrong == [], path
        empty = page.evaluate("[...document.images].filter(i => !i.naturalWidth).length")
        assert empty == 0, path
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
        page.close()


@pytest.mark.parametrize(
    ("media", "size", "shrunk"),
    # To print, a browser shrinks what is wider than the sheet; by half again it is still readable.
    [("screen", PHONE, 1.0), ("print", PAPER, 1.5)],
)
def test_no_page_is_wider_than_a_phone_or_a_sheet(
    browser: Browser, pages: list[Path], media: str, size: dict[str, int], shrunk: float
) -> None:
    for path in pages:
        page, _ = visit(browser, path, size)
        page.emulate_media(media=media)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= shrunk * size["width"], f"{path}: {width} px"
        page.close()


def test_links_resolve(browser: Browser, pages: list[Path]) -> None:
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


def test_the_checks_see_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    """The same checks on a page that has everything wrong."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<html lang='en'><head><title>Bad</title></head><body><main><h1>Bad</h1>"
        "<p style='color: #bbb; background: #fff'>faint</p><img src='missing.png'>"
        "<p style='width: 2000px'>wide</p></main></body></html>"
    )
    page, wrong = visit(browser, path, PHONE)
    assert any("missing.png" in each for each in wrong)
    assert page.evaluate("[...document.images].filter(i => !i.naturalWidth).length") == 1
    assert page.evaluate("document.documentElement.scrollWidth") > 390
    found = axe.Axe().run(page).response["violations"]
    assert {"image-alt", "color-contrast"} <= {each["id"] for each in found}


def test_pages_are_small(pages: list[Path]) -> None:
    assert max(path.stat().st_size for path in pages) < 5e6
