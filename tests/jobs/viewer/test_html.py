"""The page in a real headless Chromium: rounds, candidates, frames, search, one file; phone and desk, dark, light."""

from __future__ import annotations

import re

import pytest

from kinodex.web.inputs import ViewerApi, classify_inputs
from kinodex.web.page import one_file
from tests.support.libraries.viewer_library import EVIL, served, write_long_trace
from tests.support.pages import browser_context, hard_to_use, width_px

pytestmark = pytest.mark.needs_chromium
QUICK_MS = 2000
"""Tens of milliseconds on an idle core; these tests share theirs, sometimes with eight others."""


@pytest.fixture(scope="module")
def context(address, run, two_spaces):
    """A browser; what tests show is made before, since no event loop can run in this thread while Chromium is open."""
    with browser_context("clipboard-read", "clipboard-write") as context:
        yield context


def rounds(page):
    return [label.inner_text() for label in page.locator(".round-label").all()]


def test_arrow_keys_and_the_slider_go_through_the_rounds(opened, address):
    page = opened(f"{address}/#/trace/t0")
    segments = page.locator(".timeline .segment")
    assert rounds(page) == ["round 4 of 4"]
    whole = segments.count()
    page.keyboard.press("ArrowLeft")
    assert rounds(page) == ["round 3 of 4"]
    assert segments.count() < whole
    page.keyboard.press("Home")
    assert rounds(page) == ["before round 1"]
    page.get_by_role("slider", name="Round").focus()
    page.keyboard.press("ArrowRight")
    assert rounds(page) == ["round 1 of 4"]
    page.get_by_role("button", name="Next round").click()
    assert rounds(page) == ["round 2 of 4"]
    assert page.locator(".round h2").inner_text() == "Round 2"
    assert page.locator(".ledger tr.now th").inner_text() == "2"


def test_candidates_are_chosen_on_the_time_line_and_in_the_table(opened, address):
    page = opened(f"{address}/#/trace/t0")
    assert EVIL in page.locator(".candidates tbody small").first.inner_text()
    row = page.locator(".candidates tbody button").first
    row.focus()
    page.keyboard.press("Enter")
    assert page.locator(".candidates tr.selected").count() == 1
    number = page.locator(".timeline .segment.selected").get_attribute("data-number")
    assert page.evaluate("document.activeElement.dataset.focus") == f"candidate {number}"
    page.keyboard.press("+")
    page.get_by_role("button", name="Whole video").click()
    assert page.get_by_role("button", name="Whole video").count() == 0
    page.locator(".timeline .segment.open").last.dblclick()
    page.get_by_role("button", name="Whole video").wait_for()
    assert page.locator(".timeline .segment.selected").count() == 1


def test_arrow_keys_go_from_segment_to_segment_and_the_rounds_stay(opened, address):
    page = opened(f"{address}/#/trace/t0")
    focused = "document.activeElement.dataset.focus"
    page.locator(".timeline [tabindex='0']").focus()
    assert page.evaluate(focused) == "segment 0"
    page.keyboard.press("ArrowDown")
    first = page.locator(".timeline .segment.selected")
    assert first.get_attribute("aria-label").startswith("1: 0:00.0 to ")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "segment 2"
    assert page.locator(".about").inner_text().count("Segment 2: ") == 1
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == "segment 0"
    page.keyboard.press("Enter")
    assert page.locator(".about").count() == 0
    assert rounds(page) == ["round 4 of 4"]
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth") == "4px"


def test_the_address_holds_the_round_and_the_frame(opened, address, shown):
    page = opened(f"{address}/#/trace/t0,t1")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/#/trace/t0,t1/1,1")
    page.reload()
    page.wait_for_selector("article + article")
    assert rounds(page) == ["round 1 of 4", "round 1 of 2"]
    page.goto(f"{address}/#/library/0/video/{shown.video_id}/0")
    page.wait_for_selector(".still img")
    page.keyboard.press("PageDown")
    page.wait_for_url(f"**/video/{shown.video_id}/10")
    page.go_back()
    page.wait_for_selector("article + article")
    assert rounds(page) == ["round 1 of 4", "round 1 of 2"]


def test_a_frame_is_seen_at_full_size_and_a_call_with_its_prompt(opened, address):
    page = opened(f"{address}/#/trace/t0")
    page.locator(".round .frame").first.click()
    large = page.locator("dialog img")
    assert width_px(large) == 64
    first = large.get_attribute("src")
    page.keyboard.press("ArrowRight")
    assert large.get_attribute("src") != first
    assert rounds(page) == ["round 4 of 4"]
    page.keyboard.press("Escape")
    page.locator(".calls summary").first.click()
    assert EVIL in page.locator(".call pre").first.inner_text()


def test_curves_come_when_they_are_there_and_follow_the_chosen_query(opened, address):
    page = opened(f"{address}/#/trace/t0")
    page.wait_for_selector(".timeline .curve", state="attached")
    chip = page.locator(".queries .chip").first
    chip.click()
    assert chip.get_attribute("aria-pressed") == "true"


def test_traces_of_one_question_stand_side_by_side_and_go_together(opened, address):
    page = opened(address)
    assert page.locator("article.trace").count() == 2
    assert rounds(page) == ["round 4 of 4", "round 2 of 2"]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert rounds(page) == ["round 1 of 4", "round 1 of 2"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_every_view_fits_a_phone_and_a_desk_and_is_easy_to_use(opened, address, shown, width, scheme):
    page = opened(address, width, scheme)
    ground = {"light": "rgb(244, 244, 245)", "dark": "rgb(17, 17, 19)"}[scheme]
    views = {
        "#/library/0": ".posters a",
        f"#/library/0/video/{shown.video_id}/3": ".box",
        "#/trace/t0,t1": "article + article",
    }
    for place, sign in views.items():
        page.goto(f"{address}/{place}")
        page.wait_for_selector(sign)
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, place
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        assert page.evaluate("document.getAnimations().length") == 0
        assert hard_to_use(page) == [], place


def test_one_file_needs_no_server(opened, shown, tmp_path):
    out = tmp_path / "trace.html"
    whole = one_file(ViewerApi(classify_inputs([str(shown.traces[0]), shown.library.uri])))
    assert (whole.traces_left_out, whole.pictures_left_out) == (0, 0)
    out.write_text(whole.text, encoding="utf-8")
    page = opened(out.as_uri())
    assert width_px(page.locator(".round .frame img").first) == 64
    page.wait_for_selector(".timeline .curve", state="attached")
    page.keyboard.press("ArrowLeft")
    assert rounds(page) == ["round 3 of 4"]


def test_a_trace_of_a_thousand_events_stays_quick(opened, shown, tmp_path):
    write_long_trace(tmp_path / "long.jsonl", shown.traces[0], rounds=250)
    with served(tmp_path / "long.jsonl", shown.traces[0], shown.library.uri) as address:
        page = opened(f"{address}#/trace/t0")
        press = "key => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
        took_ms = page.evaluate(
            f"() => {{ const began = performance.now(); for (let n = 0; n < 5; n++) ({press})('ArrowLeft');"
            "document.body.offsetHeight; return (performance.now() - began) / 5; }"
        )
        assert rounds(page) == ["round 245 of 250"]
        assert took_ms < QUICK_MS
        page.get_by_role("button", name="candidates more").click()
        assert page.locator(".candidates tbody tr").count() == 246
        assert page.evaluate("document.activeElement.dataset.focus").startswith("candidate ")
        page.goto(f"{address}#/trace/t0,t1")
        page.wait_for_selector("article + article")
        page.keyboard.press("Home")
        assert rounds(page) == ["round 1 of 250", "before round 1"]
        page.keyboard.press("ArrowRight")
        assert rounds(page) == ["round 1 of 250", "round 1 of 4"]
        page.goto("about:blank")  # before the server ends, which its pictures come from


def test_what_is_not_there_is_told(context, address):
    page = context.new_page()
    page.goto(f"{address}/#/trace/t9")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "got trace 9; there are 2, counted from 0" in alert.inner_text()
    page.get_by_role("navigation").get_by_role("link").click()
    page.wait_for_selector("form")
    page.goto(f"{address}/#/trace/%E0")
    page.get_by_role("alert").wait_for()
    page.close()


def test_a_run_opens_its_traces(opened, run):
    with served(run) as address:
        page = opened(address)
        page.locator(".questions tbody tr").first.wait_for()
        assert page.locator(".questions tbody tr").count() == 4
        page.get_by_role("searchbox").fill("orchard")
        page.get_by_text("2", exact=True).first.wait_for()
        assert page.locator(".questions tbody tr").count() == 2
        page.get_by_role("link", name=re.compile("^Trace of uniform")).first.click()
        page.locator(".answer .tag").wait_for()
        assert page.locator(".truth-span").count() == 1 and page.locator("article").count() == 1
        page.go_back()
        page.locator(".questions th a").first.click()
        page.locator("article + article").wait_for()
        page.goto("about:blank")  # before the server ends, which its pictures come from
