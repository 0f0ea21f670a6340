"""A notebook: its cells give what docs/notebook.ipynb shows, hits and answers with pictures that play their video."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

import kinodex
from docs.notebook_page import PAGE, executed
from kinodex.notebook import play_link

PICTURE = re.compile(r"base64,[^\"]+")


@pytest.mark.slow
def test_the_cells_give_what_the_page_shows(films: Path, tmp_path: Path) -> None:
    def shown(book: nbformat.NotebookNode) -> list[tuple[str, list[str]]]:
        outputs = [(cell.source, cell.get("outputs", [])) for cell in book.cells]
        return [(said, [PICTURE.sub("", "".join(each.data.values())) for each in made]) for said, made in outputs]

    assert shown(executed(films, tmp_path)) == shown(nbformat.read(PAGE, as_version=4))


def test_a_library_its_hits_and_its_answer_are_pickled_and_shown(library: Path, films: Path) -> None:
    with kinodex.open(library) as opened:
        hits = opened.search("a bird", k=2)
        answer = opened.ask("What colour is the bird at sea?", ["red", "black"])
        for each in (opened, hits, answer):
            html = pickle.loads(pickle.dumps(each))._repr_html_()
            assert html == each._repr_html_() and "film-0" in html and html.count("<img") >= 1
    assert [hit.title for hit in hits] == [opened.video(hit.video_id).title for hit in hits]
    assert opened.search("a bird", k=2) == hits  # what was let go is loaded again
    assert "no hits" in opened.search("zzzz", in_="speech")._repr_html_()


def test_a_link_plays_in_a_browser_and_tells_no_password(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = replace(kinodex.open(library).videos()[0], start_s=0.0)
    monkeypatch.chdir("/")
    links = {
        "https://me:word@host/a.mp4": "https://host/a.mp4#t=7.5",
        "/srv/a film.mp4": "srv/a%20film.mp4#t=7.5",
        "s3://bucket/a.mp4": "",
    }
    assert {uri: play_link(replace(video, uri=uri), 7.5) for uri in links} == links
