"""`kinodex watch`: pages and files of a local server, by the real yt-dlp, into a library that is kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kinodex as front_door
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.page_downloads import refusal
from kinodex.pipeline.errors import SourceForbidden, SourceUnreachable
from kinodex.watch import PAGE_CHAPTERS, watch
from tests.support.command import Kinodex, bad
from tests.support.servers.files import serve_folder
from tests.world.drawn_space import DRAWN

pytest.importorskip("yt_dlp")
CLIPS = [
    {"@type": "Clip", "name": "First steps", "startOffset": 0, "endOffset": 9},
    {"@type": "Clip", "name": "The harbour", "startOffset": 9, "endOffset": 20},
]


@pytest.fixture
def site(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to serve: a film, its subtitles, a page of both, and a page that names chapters."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(films / "film-01.mp4", folder / "film.mp4")
    (folder / "lines.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:03.000\nA zebra crosses the square.\n")
    track = '<track kind="subtitles" src="lines.vtt" srclang="en">'
    (folder / "page.html").write_text(f'<title>A walk</title><video src="film.mp4">{track}</video>')
    (folder / "live.html").write_text("<title>Nothing here</title><p>No video.</p>")
    return folder


def with_chapters(site: Path, address: str) -> str:
    facts = {"@context": "https://schema.org", "@type": "VideoObject", "name": "A walk", "hasPart": CLIPS}
    facts["contentUrl"] = f"{address}/film.mp4"
    script = f'<script type="application/ld+json">{json.dumps(facts)}</script>'
    (site / "chapters.html").write_text(f"<html><head><title>A walk</title>{script}</head></html>")
    return f"{address}/chapters.html"


@pytest.mark.slow
def test_a_page_is_indexed_with_its_subtitles_once_and_asked_about(site: Path, kinodex: Kinodex) -> None:
    asked = ("What appears in the film?", "--option", "a blue boat", "--option", "a pink elephant")
    with serve_folder(site) as address:
        ran = kinodex("watch", f"{address}/page.html", *asked, "--space", DRAWN)
        assert ran.code == 0 and "status" in ran.out
    place = site.parent / "data" / "kinodex" / "watched" / "library"
    again = kinodex("watch", f"{address}/page.html", *asked)  # the server is gone: nothing is fetched twice
    assert again.code == 0 and "status" in again.out
    (line,) = Library.open(str(place)).speech(Library.open(str(place)).videos()[0].video_id)
    assert (line.text, line.language) == ("A zebra crosses the square.", "en")


@pytest.mark.slow
def test_a_file_by_its_address_and_chapters_of_a_page(site: Path, tmp_path: Path) -> None:
    with serve_folder(site) as address:
        by_page = watch(with_chapters(site, address), str(tmp_path / "pages"), space=DRAWN)
        by_file = watch(f"{address}/film.mp4", str(tmp_path / "files"), space=DRAWN)
    assert by_file.uri == f"{address}/film.mp4" and by_file.video_id == by_page.video_id
    library = Library.open(str(tmp_path / "pages"))
    rows = library.chapters.rows(by_page.video_id)
    assert [(row.title, row.start_s, row.end_s, row.model) for row in rows] == [
        ("First steps", 0.0, 9.0, PAGE_CHAPTERS),
        ("The harbour", 9.0, 20.0, PAGE_CHAPTERS),
    ]
    assert [row.segments > 0 for row in rows] == [True, True]
    (hit, *_) = front_door.open(tmp_path / "pages").search("harbour", in_="chapters")
    assert hit.time_s == 9.0


def test_what_cannot_be_watched_is_said_in_a_sentence_and_leaves_nothing(
    site: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    place = tmp_path / "none"
    with serve_folder(site) as address:
        bad(kinodex, "watch", f"{address}/live.html", "--library", place, code=2, says="finds no video")
        bad(kinodex, "watch", f"{address}/gone.html", "--library", place, code=2, says="cannot fetch")
    bad(kinodex, "watch", str(site / "film.mp4"), "--library", place, code=2, says="`kinodex ingest` takes files")
    assert not place.exists()


@pytest.mark.parametrize(
    "said, kind, says",
    [
        ("ERROR: [x] 1: This video is DRM protected", SourceForbidden, "protected by DRM"),
        ("ERROR: [youtube] 1: Private video. Sign in if you have been granted access", SourceForbidden, "is private"),
        ("ERROR: [x] 1: Join this channel to get access to members-only content", SourceForbidden, "for members"),
        ("ERROR: Unable to download webpage: HTTP Error 500", SourceUnreachable, "HTTP Error 500"),
    ],
)
def test_refusals_of_pages_are_told_apart(said: str, kind: type[KinodexError], says: str) -> None:
    error = refusal("https://me:secret@site.org/v", said)
    assert type(error) is kind and says in str(error) and "secret" not in str(error)
