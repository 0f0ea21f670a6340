"""Words without pictures, `--space none`: what works, what says in one line what it lacks, and the first space."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import kinodex as package
from tests.acceptance import LINE, TENTS
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.chat_server import ChatServer

WORDS = "the code word"
HEAVY = {"torch", "onnxruntime", "open_clip", "transformers"}


@pytest.fixture(scope="module")
def made(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("words") / "library"
    assert package.ingest(str(films), library=place, space="none").count("indexed") == 3
    return place


@pytest.fixture
def words(made: Path, tmp_path: Path) -> Path:
    """A copy of the library to change."""
    return Path(shutil.copytree(made, tmp_path / "words"))


def makes_vectors(library: Path) -> str:
    """The end of the one line that says what is missing."""
    return f"needs vectors, and {library} has none; `kinodex add vectors {library} --space photo` makes them"


def test_no_model_is_loaded(short_films: Path, tmp_path: Path) -> None:
    script = (
        f"import kinodex, sys; kinodex.ingest({str(short_films)!r}, library={str(tmp_path / 'l')!r}, space='none');"
        f"library = kinodex.open({str(tmp_path / 'l')!r}); library.search('a word'); library.ground('a word');"
        f"print(*{HEAVY!r} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "\n", "")


def test_films_are_indexed_with_frames_shots_and_subtitles(kinodex: Kinodex, made: Path) -> None:
    library = package.open(made)
    assert [(row.title, row.frames) for row in library.videos()] == [(f"film-0{n}", 30) for n in (1, 2, 3)]
    assert [frame.time_s for frame in library.frames("film-02", [0, 7.4])] == [0.0, 7.0]
    segments = library.segments("film-01")
    assert (segments[0].start_s, segments[-1].end_s, segments[0].kind) == (0.0, 30.0, "shot")
    assert len(list(library.all_frames("film-01"))) == 30
    assert json_of(kinodex, "info", made)["space"] == "none"
    assert makes_vectors(made) in kinodex("info", made).out
    assert kinodex("maintain", made, "--check", "--deep").code == 0


def test_words_are_found_wherever_a_search_looks(kinodex: Kinodex, made: Path) -> None:
    library = package.open(made)
    for place in ("all", "words", "speech"):
        (hit,) = json_of(kinodex, "search", made, WORDS, "--in", place)
        assert (hit["text"], hit["time_s"]) == (LINE[0], LINE[2])
        assert [hit.text for hit in library.search(WORDS, in_=place)] == [LINE[0]]
    (found,) = library.ground(WORDS).candidates
    assert found.start_s < LINE[3] and LINE[2] < found.end_s
    assert json_of(kinodex, "ground", made, WORDS, "--in", "words")["ranges"]


def test_captions_can_be_added_and_searched(kinodex: Kinodex, words: Path, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"video": "film-02", "start_s": 8, "end_s": 12, "text": "a walrus plays chess"}')
    assert kinodex("import", "captions", tmp_path / "c.jsonl", words, "--model", "hand").code == 0
    (hit,) = package.open(words).search("walrus", in_="captions")
    assert (hit.time_s, hit.found_in) == (8.0, "captions")
    assert kinodex("add", "shots", words).code == 0


def test_what_compares_pictures_says_in_one_line_what_is_missing(kinodex: Kinodex, made: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.jpg"
    Image.new("RGB", (64, 36)).save(picture)
    asked = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--no-cache")
    for arguments in (
        ("search", made, "boat", "--in", "frames"),
        ("search", made, "--image", picture),
        ("search", made, "--like", "film-01@3"),
        ("ground", made, "boat", "--in", "frames"),
        ("duplicates", made),
        ("add", "text-tower", made),
        ("ask", made, TENTS.question, "--agent", "videotree", *asked),
    ):
        bad(kinodex, *arguments, code=2, says=makes_vectors(made))
    library = package.open(made)
    for compare in (library.duplicates, lambda: library.vectors("film-01"), lambda: library.embed("a boat")):
        with pytest.raises(package.LibraryError, match="needs vectors") as raised:
            compare()
        assert str(raised.value).endswith(makes_vectors(made))


def test_agents_look_at_frames_and_are_led_by_words(made: Path) -> None:
    with ChatServer(lambda body: {"action": "answer", "option": "C", "evidence": [1]}) as server:
        for agent in ("uniform", "kino"):
            answer = package.open(made).ask(
                TENTS.question, TENTS.options, videos=TENTS.film, agent=agent, model="tester", base_url=server.base_url
            )
            assert answer.letter == TENTS.letter and answer.ledger.frames > 0
    assert server.problems == []


def test_without_a_model_a_line_answers_or_nothing_does(kinodex: Kinodex, made: Path) -> None:
    asked = ("ask", made, "What is the code word?", "--option", "summer", "--option", "lantern")
    assert json_of(kinodex, *asked, "--video", "film-01")["letter"] == "B"
    ask = ("ask", made, TENTS.question, *(part for each in TENTS.options for part in ("--option", each)))
    for agent in ("eea", "vca"):
        bad(kinodex, *ask, "--video", "film-02", "--agent", agent, code=2, says=makes_vectors(made))
    for agent in ("uniform", "kino"):
        answer = json_of(kinodex, *ask, "--video", "film-02", "--agent", agent)
        assert (answer["status"], answer["evidence"]) == ("insufficient_evidence", []), agent
        assert answer["reason"].endswith(makes_vectors(made)), agent


def test_what_finds_nothing_says_that_pictures_were_not_compared(kinodex: Kinodex, words: Path, tmp_path: Path) -> None:
    nothing = "a boat in a storm"
    hits = package.open(words).search(nothing)
    assert (list(hits), [each.endswith(makes_vectors(words)) for each in hits.notes]) == ([], [True])
    assert package.open(words).search(WORDS).notes == ()
    bad(kinodex, "export", "csv", words, "-", "--search", nothing, code=2, says=makes_vectors(words))
    (tmp_path / "row.json").write_text('{"type": "object", "properties": {"seen": {"type": "string"}}}')
    with ChatServer(lambda body: {"seen": "a word", "evidence": [1]}) as server:
        asked = ("--schema", tmp_path / "row.json", "--model", "tester", "--base-url", server.base_url)
        for text, rows in ((WORDS, 1), (nothing, 0)):
            ran = kinodex("extract", words, *asked, "--into", f"rows_{rows}", "--search", text)
            assert f"added {rows} extract" in ran.out + ran.err and makes_vectors(words) in ran.err


def test_a_question_that_no_line_answers_counts_as_unanswered_not_as_a_fault(
    kinodex: Kinodex, made: Path, tmp_path: Path
) -> None:
    asked = [
        {"id": "said", "video": "film-01", "question": "What is the code word?", "options": ["summer", "lantern"]},
        {"id": "seen", "video": TENTS.film, "question": TENTS.question, "options": TENTS.options},
    ]
    rows = [json.dumps(each | {"answer": "B"}) for each in asked]
    (tmp_path / "questions.jsonl").write_text("\n".join(rows))
    ran = ("eval", "own", made, "--annotations", tmp_path / "questions.jsonl", "--out", tmp_path / "run")
    assert kinodex(*ran, "--agent", "uniform", "--agent", "kino").code == 0
    report = json_of(kinodex, "eval", "report", tmp_path / "run")
    for agent in ("uniform", "kino"):
        (found,) = [each for each in report["standings"] if each["name"] == agent]
        assert (found["unanswered"], found["errors"]) == (1, 0)


def test_more_films_come_without_a_space_too_and_none_of_another(
    kinodex: Kinodex, words: Path, short_films: Path
) -> None:
    more = json_of(kinodex, "ingest", short_films / "film-01.mp4", "--library", words)
    assert more["counts"]["indexed"] == 1
    bad(kinodex, "ingest", short_films / "film-02.mp4", "--library", words, "--space", "photo", code=4, says="add vect")
    bad(kinodex, "add", "vectors", words, "--space", "none", code=2, says="in which there are no vectors")


def test_vectors_make_it_a_library_like_one_that_was_ingested_so(
    kinodex: Kinodex, short_films: Path, tmp_path: Path
) -> None:
    words, titles = tmp_path / "words", [f"film-0{number}" for number in (1, 2, 3)]
    package.ingest(str(short_films), library=words, space="none")
    library = package.open(words)
    assert library.add("vectors", videos=titles[:1], space="photo").rows == 4
    assert library.info().space == "none"
    ran = kinodex("add", "vectors", words, "--space", "photo")
    assert ran.code == 0 and f"the space of {words} is photo now" in ran.err
    package.ingest(str(short_films), library=tmp_path / "whole", space="photo")
    first, whole = package.open(words), package.open(tmp_path / "whole")
    assert (first.info().space, first.info().space_digest) == ("photo", whole.info().space_digest)
    for film in titles:
        ours, theirs = first.vectors(film), whole.vectors(film)
        assert ours.frame_no.tolist() == theirs.frame_no.tolist() and ours.time_s.tolist() == theirs.time_s.tolist()
        cosines = (ours.vectors.astype(np.float64) * theirs.vectors.astype(np.float64)).sum(axis=1)
        assert cosines.mean() > 0.9  # it embeds stored pictures, and an ingest decoded ones
        assert [each.jpeg for each in first.all_frames(film)] == [each.jpeg for each in whole.all_frames(film)]
    assert {hit.found_in for hit in first.search("a boat", k=3)} == {"frames"}
    assert first.info().added == ()
    assert kinodex("maintain", words, "--check", "--deep").code == 0
    more = json_of(kinodex, "ingest", short_films, "--library", words)
    assert (more["counts"].get("indexed", 0), more["left_out"]) == (0, 3)
