"""Every page of `kinodex serve` in Chromium: phone and desk, dark and light, by keyboard alone, with hostile titles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kinodex.index.library import Library
from tests.support.libraries.viewer_library import EVIL, library_of_films, library_of_titles
from tests.support.pages import browser_context, hard_to_use
from tests.support.servers.serve_server import serving

pytestmark = pytest.mark.needs_chromium
TITLES = (
    f"film {EVIL}",
    "turned \u202egnp.exe",
    "x" * 300,
    "two\nlines and\ttabs",
    ":b :smile: **bold** &lt;b&gt;",
    "Harbour",
)
MOST_TABS = 150
GROUND = {"light": "rgb(244, 244, 245)", "dark": "rgb(17, 17, 19)"}


@dataclass(frozen=True)
class Place:
    """A page: its address, and a sign that it is drawn."""

    address: str
    sign: str


@dataclass(frozen=True)
class Site:
    """Address of the server, and its pages by name."""

    address: str
    places: dict[str, Place]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """Films with hostile titles, a library of texts alone, an empty one, and a question that was answered."""
    folder = tmp_path_factory.mktemp("pages")
    films = library_of_films(folder / "films", TITLES)
    texts = library_of_titles(folder / "texts", 2)
    empty = Library.create(str(folder / "empty"), {"fps": 1.0}, films.fingerprint)
    with serving([each.uri for each in (films, texts, empty)], folder / "traces") as client:
        asked = {"options": ["yes", f"no {EVIL}"], "budget": {"rounds": 2}}
        question, other = (client.ask(f"Is there a red shoe? {EVIL}", **asked) for _ in range(2))
        for each in (question, other):
            client.wait(each)
        evil, long = (films.video(title).video_id for title in (TITLES[0], TITLES[2]))
        yield Site(
            client.address,
            {
                "home": Place("#/", ".mosaic .poster"),
                "library": Place("#/library/0", ".posters a"),
                "video": Place(f"#/library/0/video/{evil}/3", "main h1"),
                "long title": Place(f"#/library/0/video/{long}/3", "main h1"),
                "search": Place("#/library/0/search/text%3Dred%2520shoes", ".hit"),
                "moments": Place("#/library/0/moments/text%3Dred%2520shoes", ".found, .absent"),
                "moments of a video": Place(f"#/library/0/video/{evil}/3/text%3Dred%2520shoes", ".found, .absent"),
                "ask": Place("#/ask/0", "textarea"),
                "answer": Place(f"#/ask/0/{question}", "main h1"),
                "trace": Place(f"#/trace/{question}", "article.trace"),
                "traces": Place(f"#/trace/{question},{other}", "article + article"),
                "texts": Place("#/library/1", ".posters .tile"),
                "a text": Place(f"#/library/1/video/{texts.videos()[0].video_id}", "main h1"),
                "empty": Place("#/library/2", ".empty"),
            },
        )


@pytest.fixture(scope="module")
def context(site):
    with browser_context() as context:
        yield context


# Widths say whether a page fits, schemes whether it can be read; no rule of the style sheet asks for both.
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_every_page_is_for_all_and_fits_whatever_its_texts_say(opened, site, width, scheme) -> None:
    page = opened(site.address, width, scheme)
    found = {}
    for name, place in site.places.items():
        page.goto("about:blank")  # else the page before this one could give the sign
        page.goto(f"{site.address}/{place.address}")
        page.wait_for_selector(place.sign)
        page.wait_for_load_state("networkidle")
        beside_px = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUND[scheme], name
        if problems := hard_to_use(page) + ([("scrolls sideways", [f"{beside_px} px"])] if beside_px > 0 else []):
            found[name] = problems
    page.goto("about:blank")  # before the server ends, which its pictures come from
    assert found == {}


def test_the_whole_way_goes_by_keyboard(opened, site) -> None:
    page = opened(site.address)
    page.keyboard.press("/")
    page.keyboard.type("red shoes")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    follow_by_tab(page, ".hit a")
    page.keyboard.press("/")  # this page has no box: the first one has
    page.wait_for_function("() => document.activeElement.matches('.home [data-box]')")
    follow_by_tab(page, ".home-card h3 a")
    page.wait_for_selector(".posters a")
    follow_by_tab(page, ".posters a")
    follow_by_tab(page, ".top nav a[href='#/library/0']")
    page.wait_for_selector(".posters a")
    follow_by_tab(page, ".top nav a[href^='#/ask']")
    page.wait_for_selector("textarea")
    follow_by_tab(page, ".top .brand")
    page.wait_for_selector(".one-box")
    page.keyboard.press("/")
    page.keyboard.type("Is there a boat?")
    go_by_tab(page, ".one-box button[title*='language model']")
    page.wait_for_url(re.compile(r"#/ask/0$"))
    page.goto("about:blank")


def follow_by_tab(page, selector: str) -> None:
    """Go to a link by Tab and follow it; the next page has another title once it is drawn."""
    page.wait_for_selector(selector)
    before = page.title()
    go_by_tab(page, selector)
    page.wait_for_function("before => document.title !== before", arg=before)


def go_by_tab(page, selector: str, press: str | None = "Enter") -> None:
    """Press Tab until an element has the focus, which must be visible there, and then a key."""
    for _ in range(MOST_TABS):
        if page.evaluate("each => document.activeElement.matches(each)", selector):
            break
        page.keyboard.press("Tab")
    else:
        pytest.fail(f"Tab does not reach {selector}")
    shown = page.evaluate("(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle; })()")
    assert shown != "none", f"{selector} does not show that it has the focus"
    if press:
        page.keyboard.press(press)


def test_the_program_comes_in_one_request_is_kept_and_a_page_without_it_is_not_empty(context, site) -> None:
    page, asked = context.new_page(), list[str]()
    page.on("response", lambda reply: asked.append(reply.url) if "/page/" in reply.url else None)
    page.goto(f"{site.address}/#/library/0")
    page.wait_for_selector(".posters a")
    assert len(asked) == len({*asked}) == 2
    kept = "() => performance.getEntriesByType('resource').filter((each) => each.name.includes('/page/'))"
    page.reload()
    page.wait_for_selector(".posters a")
    assert page.evaluate(f"({kept})().map((each) => each.transferSize)") == [0, 0], "from the browser's own store"
    page.close()
    page = context.browser.new_page()
    page.route("**/page/*.js", lambda route: route.abort("connectionrefused"))
    page.goto(site.address)
    page.get_by_text("The program of this page did not load").wait_for()
    page.close()


def test_a_server_that_is_gone_is_said_and_tried_again(context, site) -> None:
    page = context.new_page()
    page.goto(f"{site.address}/#/library/0")
    page.wait_for_selector(".posters a")
    page.route("**/data/**", lambda route: route.abort("connectionrefused"))
    page.get_by_label("Find videos by title").fill("harbour")
    banner = page.locator(".banner.gone")
    banner.wait_for()
    assert "does not answer" in banner.inner_text() and hard_to_use(page) == []
    with page.expect_event("requestfailed"):
        banner.get_by_role("button").click()
    banner.locator("button:enabled").wait_for()  # it is tried again in vain, to the end
    page.unroute_all(behavior="ignoreErrors")
    banner.get_by_role("button").click()
    banner.wait_for(state="detached")
    page.wait_for_selector(".posters a")
    page.close()


def test_an_address_of_nothing_leads_back(context, site) -> None:
    page = context.new_page()
    for address in ("#/library/9", "#/trace/t9", "#/run/3", "#/library/0/video/nobody", "#/ask/7"):
        page.goto(f"{site.address}/{address}")
        page.get_by_role("alert").wait_for()
        assert page.locator("main h1").count() == 1, address
        if address == "#/run/3":
            assert hard_to_use(page) == []
        page.get_by_role("link", name="Back to the start").click()
        page.wait_for_selector(".mosaic")
    page.close()


def test_what_the_server_says_is_shown_also_where_it_is_no_data(context, site) -> None:
    page = context.new_page()
    page.route("**/data/libraries/0", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    page.goto(f"{site.address}/#/library/0")
    page.get_by_role("alert").get_by_text("/data/libraries/0 was answered with 502").wait_for()
    assert "<h1>Bad Gateway</h1>" in page.get_by_role("alert").inner_text()
    page.unroute_all(behavior="ignoreErrors")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".posters a")
    page.close()


def test_nothing_moves_for_who_wants_no_motion(context, site) -> None:
    page = context.new_page()
    page.emulate_media(reduced_motion="reduce")
    for name in ("library", "ask", "answer"):
        page.goto(f"{site.address}/{site.places[name].address}")
        page.wait_for_selector(site.places[name].sign)
        assert page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length") == 0
    page.close()
