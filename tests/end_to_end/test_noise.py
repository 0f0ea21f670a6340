"""A film that kinodex did not draw, and the built-in space: refused, or taken anyway and called noise by every face."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import kinodex as package
from kinodex.index.library import Library
from kinodex.index.remove import remove_videos
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.sources import list_sources
from tests.support.command import Kinodex, bad, json_of
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.servers.mcp_client import call, use_tools
from tests.support.servers.serve_server import serving

CLIP = "torchcodec__dog_eating_854132.mp4"
WHAT = "a red boat"
SPACE = ("--space", "builtin")
NOISE = "this ranking is noise: the space builtin knows only films that kinodex drew, and {} searched are others"


@pytest.fixture(scope="module")
def clip(media: Path) -> Path:
    return media / "clips" / CLIP


@pytest.fixture(scope="module")
def mixed(short_films: Path, clip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of a drawn film and of a real clip, made with --anyway."""
    place = tmp_path_factory.mktemp("mixed") / "library"
    config = IngestConfig(space="builtin", anyway=True, workers=1)
    assert (
        run_ingest(config, list_sources([str(short_films / "film-01.mp4"), str(clip)]), str(place)).count("indexed")
        == 2
    )
    return place


@pytest.mark.slow
def test_a_real_film_is_refused_by_name_and_leaves_no_library_and_anyway_takes_it(
    kinodex: Kinodex, short_films: Path, clip: Path, tmp_path: Path
) -> None:
    place = tmp_path / "library"
    to = ("--library", place, *SPACE)
    bad(kinodex, "ingest", clip, *to, code=2, says=f"knows only films that kinodex drew, and these are others: {CLIP};")
    assert not place.exists()
    told = json_of(kinodex, "ingest", clip, short_films / "film-01.mp4", *to, code=3)
    states = {each["title"]: (each["state"], each["error_class"]) for each in told["sources"]}
    assert states == {clip.stem: ("failed", "NotDrawn"), "film-01": ("indexed", None)}
    assert json_of(kinodex, "search", place, WHAT)[0]["noise"] is None
    assert json_of(kinodex, "ingest", clip, *to, "--anyway")["sources"][0]["state"] == "indexed"
    assert json_of(kinodex, "info", place)["failures"] == []
    noise = NOISE.format("1 of the 2")
    assert json_of(kinodex, "search", place, WHAT)[0]["noise"].startswith(noise)
    library = Library.open(str(place))
    remove_videos(library, library.video(clip.stem).video_id)
    assert json_of(kinodex, "search", place, WHAT)[0]["noise"] is None, "it is gone, and what is left is drawn"


@pytest.mark.slow
def test_every_face_says_that_the_ranking_is_noise(kinodex: Kinodex, mixed: Path, tmp_path: Path) -> None:
    noise = NOISE.format("1 of the 2")
    opened = package.open(mixed)
    for command in (("search", mixed, WHAT), ("ground", mixed, WHAT), ("info", mixed)):
        assert noise in kinodex(*command).out, command
    for command in (("ground", mixed, WHAT), ("info", mixed), ("ask", mixed, "What is shown?")):
        assert json_of(kinodex, *command)["noise"].startswith(noise), command
    assert noise in kinodex("ask", mixed, "What is shown?").out
    said: dict[str, str | None] = {
        "search": opened.search(WHAT)[0].noise,
        "ground": opened.ground(WHAT).noise,
        "info": opened.info().noise,
        "ask": opened.ask("What is shown?").noise,
    }
    with serving([mixed], tmp_path / "traces") as client:
        for path in ("", f"/search?query={WHAT}&in=frames", f"/moments?text={WHAT}"):
            said[path] = client.get(f"/data/libraries/0{path}".replace(" ", "%20")).json["noise"]
        chat = {
            "model": client.get("/v1/models").json["data"][0]["id"],
            "messages": [{"role": "user", "content": "What is shown?"}],
        }
        said["chat"] = client.post("/v1/chat/completions", chat).json["kinodex"]["noise"]
        key = client.ask("What is shown?")
        client.wait(key)
        said["trace"] = client.get(f"/data/traces/{key}").json["trace"]["answer"]["noise"]

    async def use(client: Client) -> None:
        for tool, words in (("search", {"query": WHAT}), ("ground", {"text": WHAT}), ("videos", {})):
            said[f"mcp {tool}"] = (await call(client, tool, **words)).get("noise")
        said["mcp ask"] = (await call(client, "ask", question="What is shown?")).get("noise")

    use_tools(Library.open(str(mixed)), use)
    assert {face: text for face, text in said.items() if not (text or "").startswith(noise)} == {}
    page = tmp_path / "page.html"
    assert kinodex("export", "page", mixed, page).code == 0
    assert noise in page.read_text()


@pytest.mark.slow
def test_what_is_found_by_its_words_or_in_a_drawn_film_is_no_noise(kinodex: Kinodex, mixed: Path) -> None:
    assert {each["noise"] for each in json_of(kinodex, "search", mixed, WHAT, "--video", "film-01")} == {None}
    lines = json_of(kinodex, "search", mixed, "long story", "--in", "speech")
    assert {each["noise"] for each in lines} <= {None}
    assert json_of(kinodex, "ground", mixed, WHAT, "--in", "words")["noise"] is None


@pytest.mark.slow
def test_another_space_takes_it_and_the_built_in_one_is_not_added_unless_anyway(
    kinodex: Kinodex, tiny_model: Callable[[str], Path], clip: Path, tmp_path: Path
) -> None:
    place, own = tmp_path / "library", f"local-dir:{tiny_model('space')}"
    assert kinodex("ingest", clip, "--library", place, "--space", own).code == 0
    add = ("add", "vectors", place, *SPACE)
    bad(kinodex, *add, code=2, says=f"and these are others: {clip.stem}; name another space")
    assert [each.name for each in Library.open(str(place)).spaces()] == [own]
    assert kinodex(*add, "--anyway").code == 0
    assert json_of(kinodex, "search", place, WHAT)[0]["noise"] is None
    found: list[dict[str, Any]] = json_of(kinodex, "search", place, WHAT, *SPACE)
    assert found[0]["noise"].startswith(NOISE.format("1 of the 1"))


@needs_ffmpeg
def test_a_drawn_film_is_known_by_its_container_or_by_the_script_of_an_earlier_version(
    short_films: Path, tmp_path: Path
) -> None:
    film = short_films / "film-01.mp4"
    bare, older, packed = tmp_path / "bare.mp4", tmp_path / "older.mp4", tmp_path / "packed.mkv"
    ffmpeg("-i", film, "-map_metadata", "-1", "-c", "copy", bare)
    shutil.copy(bare, older)
    older.with_suffix(".script.json").write_text(json.dumps({}))
    ffmpeg("-i", film, "-t", "2", packed)
    assert [probe(each).drawn for each in (film, packed, older, bare)] == [True, True, True, False]
