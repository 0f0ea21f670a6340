"""A film whose timestamps begin at 4001.4 s is spoken of as its twin that begins at 0: in the times of a player."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import kinodex
from kinodex.index.library import Library
from tests.support.command import Kinodex, json_of
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.servers.mcp_client import call, use_tools
from tests.support.servers.serve_server import Client, serving
from tests.world.drawn_space import DRAWN
from tests.world.sketch.render import render_film
from tests.world.sketch.script import write_script

FILM_S = 40.0
START_S = 4001.4
"""ffmpeg's muxer adds 1.4 s to the 4000 that are asked of it."""
BIRD = "What colour is the bird at sea?"
SAID = ((4.0, 6.0, "Listen well: the code word is summer."), (30.5, 32.0, "Goodbye."))
SUBTITLES = "1\n00:00:04,000 --> 00:00:06,000\n{}\n\n2\n00:00:30,500 --> 00:00:32,000\n{}\n"
FRAMES = {"video": "harbour", "times_s": [3.0, 30.5]}
OF_THE_FILE = frozenset({"presentation_start_s", "presentation_end_s", "zero_s", "uri", "path", "trace", "ingested_at"})
OF_THE_RUN = frozenset({"seconds", "model_seconds", "key"})
"""Fields that may differ: presentation times have columns of their own."""


class Twin(NamedTuple):
    """A library of one film, and what asks it."""

    library: Path
    kinodex: Kinodex
    folder: Path
    client: Client

    def data(self, path: str) -> Any:
        reply = self.client.get(f"/data/libraries/0/{path}")
        assert reply.status == 200, reply.body
        return reply.json


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A film that begins at 0, and a transport stream of the same pictures; the same subtitles lie beside both."""
    folder = tmp_path_factory.mktemp("clocks")
    plain, late = folder / "plain" / "harbour.mp4", folder / "late" / "harbour.ts"
    plain.parent.mkdir()
    late.parent.mkdir()
    render_film(write_script("harbour", FILM_S, 5), plain)
    ffmpeg("-i", plain, "-c", "copy", "-output_ts_offset", "4000", late)
    for film in (plain, late):
        film.with_suffix(".script.json").touch()  # a transport stream has no tags to say that it is drawn
        film.with_suffix(".srt").write_text(SUBTITLES.format(*(text for _, _, text in SAID)))
    return {"plain": plain, "late": late}


def ask_with_trace(twin: Twin) -> Any:
    """The answer, and all that the trace has of it: prompts word for word, segments, frames, evidence."""
    trace = twin.folder / "trace.jsonl"
    options = ("--option", "red", "--option", "black", "--max-rounds", "3", "--trace", trace)
    answer = json_of(twin.kinodex, "ask", twin.library, BIRD, *options)
    return answer["evidence"], [json.loads(line) for line in trace.read_text().splitlines()]


def exported(twin: Twin) -> Any:
    """The manifest of clips, and what texts say."""
    clips = twin.folder / "clips"
    twin.kinodex("export", "clips", twin.library, clips, "--search", "summer", "-k", 2, "--exact")
    with (clips / "clips.csv").open(newline="") as file:
        manifest = list(csv.DictReader(file))
    assert all(not row["error"] for row in manifest)
    texts = [twin.kinodex("export", kind, twin.library).out for kind in ("vtt", "srt", "edl")]
    texts = [re.sub(r"(?m)^\* FROM CLIP: file:.*/harbour\.(mp4|ts)$", "", text) for text in texts]  # the twins' files
    rows = [json.loads(line) for line in twin.kinodex("export", "jsonl", twin.library).out.splitlines()]
    return manifest, texts, rows


def page(twin: Twin) -> Any:
    """The data of the page: the video, a search, the library, the downloads."""
    film = Library.open(str(twin.library)).video("harbour").video_id
    said = twin.client.get(f"/data/libraries/0/export/vtt?{urlencode({'video': film, 'ranges': '0-60'})}")
    return (
        twin.data(f"videos/{film}"),
        twin.data(f"search?{urlencode({'query': 'summer', 'start_s': '0', 'end_s': '60'})}"),
        said.body.decode(),
    )


def chat(twin: Twin) -> Any:
    """The answer of the chat endpoint, in words and with its evidence."""
    body = {"model": "library", "messages": [{"role": "user", "content": f"{BIRD}\nA. red\nB. black"}]}
    reply = twin.client.post("/v1/chat/completions", body).json
    [message] = [each["message"] for each in reply["choices"]]
    cited = [each["url_citation"]["title"] for each in message["annotations"]]  # addresses differ by server
    return message["content"], cited, reply["kinodex"]["evidence"]


def mcp(twin: Twin) -> Any:
    """The replies of tools."""
    found: list[Any] = []

    async def use(client: Any) -> None:
        found.append(await call(client, "overview", video="harbour"))
        found.append(await call(client, "lines", video="harbour", start_s=0.0, end_s=60.0))
        found.append(await call(client, "search", query="summer", start_s=0.0, end_s=60.0))
        found.append(await call(client, "ground", text="a bird at sea"))
        found.append([each.text for each in (await client.call_tool("frames", FRAMES)).content if each.type == "text"])

    use_tools(Library.open(str(twin.library)), use)
    return found


def python(twin: Twin) -> Any:
    """Rows of the Python door, of every kind that has times."""
    library = kinodex.open(twin.library)
    hits = library.search("summer", start_s=0.0, end_s=60.0)
    frames = library.frames("harbour", [3.0, 30.5])
    return (
        [(hit.time_s, hit.end_s, hit.text) for hit in hits],
        [(library.frame(hit).time_s, hit.frame_no) for hit in hits],
        [(frame.time_s, frame.frame_no) for frame in frames],
        [(row.start_s, row.end_s) for row in library.segments("harbour")],
        [(row.start_s, row.end_s, row.text) for row in library.speech("harbour")],
        library.to_arrow(columns=["time_s"]).read_all().column("time_s").to_pylist(),
        [(each.start_s, each.end_s) for each in library.ask(BIRD, ["red", "black"]).evidence],
    )


FACES: dict[str, Callable[[Twin], Any]] = {
    "search": lambda twin: json_of(twin.kinodex, "search", twin.library, "summer", "--from", 0, "--to", 60),
    "search in words": lambda twin: twin.kinodex("search", twin.library, "summer", "--from", 0, "--to", 60).out,
    "frames": lambda twin: json_of(
        twin.kinodex, "export", "frames", twin.library, twin.folder / "frames", "--video", "harbour", "--at", 30.5
    ),
    "ask": ask_with_trace,
    "ground": lambda twin: json_of(twin.kinodex, "ground", twin.library, "a bird at sea"),
    "export": exported,
    "page": page,
    "chat": chat,
    "mcp": mcp,
    "python": python,
}


def plainly(value: Any, film: str) -> Any:
    """A reply without what is the file's own, and with one name for the film."""
    if isinstance(value, dict):
        return {name: plainly(each, film) for name, each in value.items() if name not in OF_THE_FILE | OF_THE_RUN}
    if isinstance(value, list | tuple):
        return [plainly(each, film) for each in value]
    if isinstance(value, str):
        return value.replace(film, "FILM").replace(film[:12], "FILM")
    return value


@needs_ffmpeg
@pytest.mark.slow
def test_every_face_gives_the_times_that_a_player_shows(
    films: dict[str, Path], kinodex: Kinodex, tmp_path: Path
) -> None:
    said: dict[str, dict[str, Any]] = {}
    for name, film in films.items():
        library = tmp_path / name / "library"
        options = ("--library", library, "--space", DRAWN, "--local", "--workers", 1)
        assert kinodex("ingest", film, *options).code == 0
        (row,) = Library.open(str(library)).videos()
        assert (row.start_s, row.zero_s) == (0.0, START_S if name == "late" else 0.0)
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        with serving([library], tmp_path / f"{name}-traces") as client:
            twin = Twin(library, kinodex, folder, client)
            said[name] = {face: plainly(speak(twin), row.video_id) for face, speak in FACES.items()}
    for face in FACES:
        assert said["late"][face] == said["plain"][face], face
    ground = json_of(kinodex, "ground", tmp_path / "late" / "library", "a bird at sea")
    first = [*ground["ranges"], *ground["weaker"]][0]
    assert first["presentation_start_s"] == pytest.approx(first["start_s"] + START_S)
    assert {hit["time_s"] < FILM_S for hit in said["late"]["search"]} == {True}
    assert said["late"]["python"][4] == [list(line) for line in SAID]
