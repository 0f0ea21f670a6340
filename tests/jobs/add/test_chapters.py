"""Scenes and chapters with titles: what is known of each, who writes them, `kinodex add chapters` from end to end."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import cast

import pytest

from kinodex.agent.attempts import Outcome
from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.summarize_part import PartSummary, SummarizePart
from kinodex.index.library import Library
from kinodex.jobs.add.endpoint import open_served
from kinodex.jobs.add.film_parts import Film, read_film
from kinodex.jobs.add.rounds import Round, run_rounds
from kinodex.jobs.add.stages import Chapters
from tests.support.command import json_of
from tests.support.libraries.random_library import spoken
from tests.support.scenes.chaptered_film import PLACES, add_film, make_film
from tests.support.servers.batch_server import BatchServer, serving
from tests.support.servers.chat_server import ChatServer, cut_off, failing, in_turn
from tests.support.servers.wire import role


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Library:
    """Two films, of which nobody described the second."""
    library = make_film(tmp_path_factory.mktemp("film") / "library", "aa")
    add_film(library, "bb", 1, described=False, places=3)
    return library


@pytest.fixture(scope="module")
def film(films) -> Film:
    return read_film(films, films.video("film aa"))


def test_scenes_are_the_places_and_cover_the_film(film, films):
    assert [(scene.start_s, scene.end_s) for scene in film.scenes] == [(60.0 * n, 60.0 * (n + 1)) for n in range(4)]
    assert [(scene.first_segment, scene.segments) for scene in film.scenes] == [(12 * n, 12) for n in range(4)]
    assert [scene.number for scene in film.scenes] == [0, 1, 2, 3]
    assert [number for chapter in film.chapters for number in chapter.children] == [0, 1, 2, 3]
    assert film.chapters[0].start_s == 0.0 and film.chapters[-1].end_s == 240.0
    assert all(before.end_s == after.start_s for before, after in pairwise(film.chapters))
    assert film.parts == 4 + len(film.chapters)
    wordless = read_film(films, films.video("film bb"))
    assert len(wordless.scenes) == 3 and not any(wordless.notes)


def test_notes_are_captions_and_what_is_said_each_once(film):
    for place, notes in zip(PLACES, film.notes, strict=True):
        assert sum(note.source == "captions" for note in notes) == 12
        said = [note.text for note in notes if note.source == "speech"]
        assert said == [f"We are at the {place} now."]


def outcomes(asked: Round, requests: list[SummarizePart], *fails: int, refused: bool = False) -> list[Outcome]:
    """Replies that number the parts of a round; scenes of some numbers get none."""
    made = cast(Sequence[SummarizePart], asked.make(range(asked.count)))
    requests += made
    usage, error = Usage(input_tokens=10), ModelRejected("it will not") if refused else None
    return [
        Outcome(None, usage, error)
        if each.level == "scene" and each.part.number in fails
        else Outcome(PartSummary(title=f"{each.level} {each.part.number}", summary="It happens."), usage)
        for each in made
    ]


@pytest.mark.parametrize(
    ("fails", "refused", "problem"),
    [
        ((), False, None),
        ((1,), False, "of {} scenes and chapters got no title that could be used"),
        ((2,), True, "requests refused: 1, the last because it will not"),
    ],
)
def test_chapters_are_written_from_their_scenes(films, fails, refused, problem):
    film, requests = films.video("film aa"), list[SummarizePart]()
    whole = read_film(films, film)
    rows = run_rounds(
        Chapters(model="m").writer(films).rounds(film), lambda asked: outcomes(asked, requests, *fails, refused=refused)
    )
    titles = [row.title for row in rows.rows if row.level == "scene"]
    assert titles == ["" if number in fails else f"scene {number}" for number in range(4)]
    assert rows.count == whole.parts and rows.usage.input_tokens == 10 * len(requests)
    assert (rows.problem is None) if problem is None else problem.format(whole.parts) in (rows.problem or "")
    assert requests[0].frames == ()
    for request in requests[4:]:
        texts = [note.text for note in request.notes]
        children = whole.chapters[request.part.number].children
        assert all((f"scene {number}. It happens." in texts) == (number not in fails) for number in children)
        assert any("kitchen" in text for text in texts) == (1 in fails and 1 in children)


def test_a_film_whose_scenes_are_all_refused_fails(films):
    requests = list[SummarizePart]()
    rounds = Chapters(model="m").writer(films).rounds(films.video("film aa"))
    rows = run_rounds(rounds, lambda asked: outcomes(asked, requests, 0, 1, 2, 3, refused=True))
    assert isinstance(rows.failed, ModelRejected) and (rows.count, rows.rows) == (0, ())
    assert rows.usage.input_tokens > 0  # what a video that fails has cost is counted


GOOD = {"title": "Kites over the sea", "summary": "Red kites fly. It is windy."}


def part(number: int = 0, *texts: str) -> SummarizePart:
    notes = tuple(Note("v", float(n), n + 1.0, "caption", text) for n, text in enumerate(texts or ("a red kite",)))
    return SummarizePart(part=Segment(number, "v", 0.0, 30.0), level="scene", notes=notes)


def one(request: SummarizePart, numbers: Sequence[int]) -> list[SummarizePart]:
    return [request for _ in numbers]


def test_an_endpoint_is_asked_once_more_and_no_more(kinodex):
    loop = {"title": "Kites", "summary": "Kites fly in it. " * 9}
    replies = in_turn({"title": "", "summary": "x"}, GOOD, loop, cut_off(str(loop)), loop, failing(400, "no"))
    with ChatServer(replies) as server, open_served(role(server)) as served:
        asked = (part(0), part(1, "a boat"), part(2, "a cat"))
        first, second, third = (served.answer(Round(1, partial(one, each)))[0] for each in asked)
    assert server.problems == []
    assert first.reply == PartSummary(**GOOD)
    assert "the title is empty" in server.seen[1].text
    assert second.reply is None and second.refused is None and second.usage.input_tokens > 0
    assert third.reply is None and third.refused is not None
    assert len(server.seen) == 6


@pytest.fixture
def library(places, tmp_path) -> Library:
    return Library.open(str(shutil.copytree(places, tmp_path / "library")))


def contents(body: dict) -> dict:
    """Name the place that is spoken of."""
    text = str([message["content"] for message in body["messages"]])
    place = next((place for place in PLACES if place in text), "place")
    return {"title": f"At the {place}", "summary": f"A {place} is seen for a minute."}


def command(library: Library, server: ChatServer | BatchServer, *more: object) -> tuple[object, ...]:
    return ("add", "chapters", library.uri, "--model", "tester", "--base-url", server.base_url, *more)


@pytest.mark.slow
def test_summaries_are_made_once_and_found_by_words(kinodex, library):
    with ChatServer(contents) as server:
        made = json_of(kinodex, *command(library, server, "--input-price", 2.0))
        again = kinodex(*command(library, server))
        asked = len(server.seen)
    assert server.problems == []
    rows = library.chapters.rows("film aa")
    assert [row.title for row in rows if row.level == "scene"] == [f"At the {place}" for place in PLACES]
    assert [row.start_s for row in rows if row.level == "scene"] == [0.0, 60.0, 120.0, 180.0]
    assert made["added"] == 2 and made["rows"] == len(rows) + len(library.chapters.rows("film bb"))
    assert 0 < made["usage"]["cost"] <= made["usage"]["input_tokens"] * 2e-6  # equal requests are paid for once
    assert asked <= made["rows"]
    assert again.code == 0 and "nothing to do: every video has chapters by" in again.out
    assert server.seen[0].schema == "PartSummary"
    assert {hit.video_id for hit in library.search.chapters("harbour")} == {"aa", "bb"}
    assert [fact.stage for fact in library.info().added] == ["captions", "chapters"]


def test_chapters_by_batches_follow_those_of_their_scenes(kinodex, library, monkeypatch, tmp_path):
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    with serving(BatchServer(contents)) as server:
        server.gate.set()
        made = json_of(kinodex, *command(library, server, "--batch-api"))
    several = sum(len(each.children) > 1 for row in library.videos() for each in read_film(library, row).chapters)
    assert (made["added"], server.online, len(server.batches)) == (2, 0, 1 + (several > 0))
    assert [row.title for row in library.chapters.rows("film aa", "scene")] == [f"At the {place}" for place in PLACES]


@pytest.mark.slow
def test_parts_without_a_title_are_told_and_retried(kinodex, library):
    def silent_about_the_kitchen(body: dict) -> dict:
        told = contents(body)
        return {"title": "", "summary": ""} if "kitchen" in told["title"] else told

    with ChatServer(silent_about_the_kitchen) as server:
        ran = kinodex(*command(library, server, "--video", "film aa"))
    assert ran.code == 3
    assert "got no title that could be used" in ran.out
    assert library.chapters.untitled("tester") == ["aa"]
    assert library.ingest_log.failures()[0].stage == "chapters"
    with ChatServer(contents) as server:
        made = json_of(kinodex, *command(library, server, "--video", "film aa", "--retry-failed"))
    assert made["added"] == 1
    assert library.chapters.untitled("tester") == []
    assert "At the kitchen" in [row.title for row in library.chapters.rows("film aa")]
    assert library.ingest_log.failures() == []


@pytest.mark.slow
def test_newer_words_renew_summaries_where_that_is_asked_for(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server))
        library.additions.add_speech({"aa": [spoken(3, "Here it is warm.")]}, "whisper")
        library.additions.complete("speech", "whisper", {"aa": 1}, {})
        assert "nothing to do" in kinodex(*command(library, server)).out
        before = len(library.chapters.rows("film aa"))
        made = json_of(kinodex, *command(library, server, "--renew"))
        assert made["added"] == 1 and library.chapters.outdated("tester") == []
        assert len(library.chapters.rows("film aa")) == before
        assert "Here it is warm." in server.seen[-1].text or any("warm" in seen.text for seen in server.seen)
        assert json_of(kinodex, *command(library, server, "--renew"))["added"] == 0


@pytest.mark.slow
def test_titles_that_are_there_stay_where_a_renewal_gives_none(kinodex, library):
    with ChatServer(contents) as server:
        json_of(kinodex, *command(library, server, "--video", "film aa"))
    before = library.chapters.rows("film aa")
    library.additions.add_speech({"aa": [spoken(3, "Here it is warm.")]}, "whisper")
    library.additions.complete("speech", "whisper", {"aa": 1}, {})
    with ChatServer(lambda body: {"title": "", "summary": ""}) as server:
        ran = kinodex(*command(library, server, "--renew", "--video", "film aa"))
    assert ran.code == 3
    assert "no scene or chapter got a title that could be used; those that were there before stay" in ran.out
    assert library.chapters.rows("film aa") == before
    assert library.chapters.outdated("tester") == ["aa"], "the next run tries again"


@pytest.mark.slow
def test_a_local_model_of_words(kinodex, library, tiny_model):
    options = ("--model", tiny_model("llama"), "--video", "film aa", "--max-new-tokens", 4)
    made = json_of(kinodex, "add", "chapters", library.uri, *options, code=3)  # its words are no titles
    assert made["failed"] == 0 and made["rows"] > 4
    assert {row.level for row in library.chapters.rows("film aa")} == {"scene", "chapter"}
