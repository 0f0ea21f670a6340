"""Pages of the viewer in a real headless Chromium: opened at a width, and checked for what went wrong when closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from axe_playwright_python.sync_playwright import Axe

from tests.support.libraries.viewer_library import chromium

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page

OpenPage = Callable[..., "Page"]
WAIT_MS = 30_000


@contextmanager
def browser_context(*permissions: str) -> Iterator[BrowserContext]:
    """Open a headless Chromium; what it is to show is made before, as `chromium` says."""
    with chromium() as browser:
        context = browser.new_context(permissions=permissions)
        context.set_default_timeout(WAIT_MS)
        yield context


@contextmanager
def pages(context: BrowserContext) -> Iterator[OpenPage]:
    """Open addresses at a width and scheme; nothing hostile may have run in any, and nothing have gone wrong but what
    is `expected`.
    """
    opened: list[Page] = []
    wrong: list[str] = []

    def open_page(
        address: str, width: int = 1280, scheme: Literal["light", "dark"] = "light", expected: str = "nothing"
    ) -> Page:
        def note(message: ConsoleMessage) -> None:
            if message.type == "error" and expected not in message.text:
                wrong.append(message.text)

        page = context.new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", note)
        page.on("request", lambda request: wrong.append(request.url) if _is_foreign(request.url, address) else None)
        page.goto(address)
        page.wait_for_selector("main h1")
        return page

    yield open_page
    hurt = {page.evaluate("window.hurt") for page in opened}
    for page in opened:
        page.close()
    assert wrong == [] and hurt <= {None}


def width_px(image: Locator) -> int:
    """Width of a picture's own, once it is there."""
    width: int = image.evaluate("image => image.decode().then(() => image.naturalWidth)")
    return width


def hard_to_use(page: Page) -> list[tuple[str, list[str]]]:
    """Findings of axe-core: contrast, labels, names, roles, parts that the keyboard does not reach."""
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in Axe().run(page).response["violations"]]


def _is_foreign(url: str, address: str) -> bool:
    return not url.startswith(("data:", "blob:", address.split("#")[0]))
