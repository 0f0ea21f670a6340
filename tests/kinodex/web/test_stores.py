"""All that the server keeps of a library for later questions and searches is used only while that stays as it is."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinodex.desk import Desk
from kinodex.index.library import Library
from kinodex.requests import Films, Find
from kinodex.web.posters import Posters
from kinodex.web.search import LibrarySearch
from kinodex.web.video_list import VideoList
from tests.support.command import Kinodex
from tests.support.models.sentence_models import small_bert

FILM, WORDS = "film-01", "a swan"


@dataclass
class Stores:
    """All stores of a server over one library, in the state that earlier questions left them in."""

    uri: str

    def __post_init__(self) -> None:
        library = Library.open(self.uri)
        self.desk, self.posters = Desk(library), Posters([self.uri])
        self.search, self.list = LibrarySearch(library, library.fingerprint), VideoList(library)

    def answers(self) -> dict[str, Any]:
        """Answers of each store at this moment."""
        library = Library.open(self.uri)
        video = library.video(FILM).video_id
        whole, alone = self.desk.environment(Films()), self.desk.environment(Films(videos=(video,)))
        return {
            "lines of the video": alone.source.lines(video),
            "lines of all": [whole.source.lines(each.video_id) for each in whole.source.videos],
            "times": alone.source.in_memory(video).stored.time_s.tolist(),
            "meaning": alone.source.line_cosines(WORDS, video) is not None,
            "words": self.search.search(Find(query=WORDS, in_="words", videos=(video,))),
            "all": self.search.search(Find(query=WORDS, videos=(video,))),
            "list": self.list.page(),
            "poster": self.posters.tag(0, video),
        }


@pytest.fixture
def own(library: Path, tmp_path: Path) -> Library:
    """A library that a test may change."""
    return Library.open(str(shutil.copytree(library, tmp_path / "library")))


CHANGES = (
    "captions of people",
    "sentences",
    "speech",
    "a voice named",
    "captions removed",
    "ingested again with subtitles",
)


def change(what: str, library: Library, kinodex: Kinodex, folder: Path) -> None:
    """Do to a library what its user may do beside the server."""
    video = library.video(FILM)
    source = folder / "captions.jsonl"
    rows = [{"video": FILM, "start_s": 1, "end_s": 2, "text": f"a swan, {what}"}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    match what:
        case "captions of people":
            ran = kinodex("import", "captions", source, library.uri, "--model", what)
        case "captions removed":
            ran = kinodex("remove", "added", library.uri, "captions", "captions of people", "--yes")
        case "sentences":
            model = small_bert(folder / "bert")
            ran = kinodex("add", "sentences", library.uri, "--model", model, "--video", FILM)
        case "speech":
            voice = SimpleNamespace(vector=np.eye(1, 256, dtype=np.float32)[0], seconds=5.0)
            (speaker,) = library.speakers.match([voice], "voices", 0.8)
            line = SimpleNamespace(start_s=1.0, end_s=2.0, text="a swan", speaker=speaker, language="en", words=())
            library.additions.add_speech({video.video_id: [line]}, "whisper")
            assert library.additions.complete("speech", "whisper", {video.video_id: 1}, {}) == ()
            return
        case "a voice named":
            ran = kinodex("speakers", library.uri, "speaker-1", "Ada")
        case _:
            film = Path(shutil.copy(video.uri, folder))
            film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\na swan\n")
            assert kinodex("remove", "videos", library.uri, FILM, "--yes").code == 0
            ran = kinodex("ingest", film, "--library", library.uri)
    assert ran.code == 0, (ran.out, ran.err)


@pytest.mark.slow
def test_what_is_kept_is_what_a_server_that_starts_now_would_read(
    own: Library, kinodex: Kinodex, tmp_path: Path
) -> None:
    kept, before = Stores(own.uri), Stores(own.uri).answers()
    assert kept.answers() == before
    for what in CHANGES:
        change(what, own, kinodex, tmp_path)
        fresh = Stores(own.uri).answers()
        assert kept.answers() == fresh, what
        assert fresh != before, f"{what}: nothing has changed, so this could not fail"
        before = fresh
