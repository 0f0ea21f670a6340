"""One contract of searching: the same queries find the same moments through every face."""

from __future__ import annotations

import base64
import io
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from mcp import Client
from PIL import Image

import kinodex
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.mcp_client import call, use_tools
from tests.support.servers.serve_server import Client as Browser
from tests.support.servers.serve_server import serving

Found = list[tuple[str, float, str]]
"""Title, time in seconds and `found_in` of each hit."""
Face = Callable[["Asked", Path, "Ways"], Found | None]
"""Gives what a face finds in a library, or None for a query that it does not take."""


@dataclass(frozen=True)
class Asked:
    """A query as the rows of the contract have it; `picture` is the file of one."""

    words: str = ""
    picture: Path | None = None
    in_: str = "all"
    video: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    k: int = 2
    condition: str | None = None
    """On the columns of videos: `where` of Python, `--where`, ..."""


class Ways(NamedTuple):
    """The command line, and a client of a server of the library."""

    kinodex: Kinodex
    browser: Browser


def by_python(asked: Asked, library: Path, _: Ways) -> Found:
    opened = kinodex.open(library)
    opened = opened if asked.condition is None else opened.where(asked.condition)
    picture = None if asked.picture is None else Image.open(asked.picture)
    query: Any = asked.words or picture
    hits = opened.search(
        query,
        k=asked.k,
        videos=() if asked.video is None else asked.video,
        start_s=asked.start_s,
        end_s=asked.end_s,
        in_=asked.in_,
        picture=picture if asked.words else None,
    )
    return [(opened.video(hit.video_id).title, round(hit.time_s, 3), hit.found_in) for hit in hits]


def by_command_line(asked: Asked, library: Path, ways: Ways) -> Found:
    options = {
        "--image": asked.picture,
        "--in": asked.in_,
        "-k": asked.k,
        "--video": asked.video,
        "--from": asked.start_s,
        "--to": asked.end_s,
        "--where": asked.condition,
    }
    given = [each for name, value in options.items() if value is not None for each in (name, value)]
    command = "search", library, *([asked.words] if asked.words else []), *given
    hits = json_of(ways.kinodex, *command)
    return [(hit["title"], round(hit["time_s"], 3), hit["found_in"]) for hit in hits]


def by_mcp(asked: Asked, library: Path, _: Ways) -> Found | None:
    if asked.picture is not None:
        return None
    given: dict[str, Any] = {
        "query": asked.words,
        "in": asked.in_,
        "start_s": asked.start_s,
        "end_s": asked.end_s,
        "k": asked.k,
        "where": asked.condition,
    }
    given["videos"] = [] if asked.video is None else [asked.video]
    found: Found = []

    async def use(client: Client) -> None:
        reply = await call(client, "search", **given)
        found.extend((hit["title"], round(hit["start_s"], 3), hit["found_in"]) for hit in reply["hits"])

    use_tools(Library.open(str(library)), use)
    return found


def by_http(asked: Asked, library: Path, ways: Ways) -> Found | None:
    video = None if asked.video is None else kinodex.open(library).video(asked.video).video_id
    values = {"query": asked.words, "in": asked.in_, "videos": video, "start_s": asked.start_s, "end_s": asked.end_s}
    values["where"] = asked.condition
    query = urlencode({name: value for name, value in values.items() if value is not None} | {"k": asked.k})
    place = "/data/libraries/0/search"
    if asked.picture is None:
        reply = ways.browser.get(f"{place}?{query}")
    else:
        sent = {"content-type": "image/jpeg"}
        reply = ways.browser.send("POST", f"{place}/picture?{query}", asked.picture.read_bytes(), sent)
    assert reply.status == 200, reply.body
    return [
        (group["title"], round(hit["start_s"], 3), hit["found_in"])
        for group in reply.json["groups"]
        for hit in group["hits"]
    ]


def by_chat(asked: Asked, library: Path, ways: Ways) -> Found | None:
    """A picture that comes with a question."""
    if asked.picture is None or asked.words:
        return None
    url = f"data:image/jpeg;base64,{base64.b64encode(asked.picture.read_bytes()).decode()}"
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "library", "messages": [{"role": "user", "content": content}], "kinodex": {"agent": "uniform"}}
    body["kinodex"] |= {"where": asked.condition}  # type: ignore[operator]
    reply = ways.browser.post("/v1/chat/completions", body)
    assert reply.status == 200, reply.body
    best = reply.json["kinodex"]["pictures"][0]
    return [(best["title"], round(best["time_s"], 3), "frames")]


FACES: dict[str, Face] = {
    "Python": by_python,
    "command line": by_command_line,
    "MCP": by_mcp,
    "HTTP": by_http,
    "chat": by_chat,
}

BIRD = ("film-01", 14.0, "frames")
WALRUS = ("film-02", 0.0, "captions")


@pytest.fixture(scope="module")
def browser(filmed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with serving([filmed], tmp_path_factory.mktemp("traces")) as client:
        yield client


@pytest.fixture
def ways(kinodex: Kinodex, browser: Browser) -> Ways:
    return Ways(kinodex, browser)


@pytest.fixture(scope="module")
def photographs(described: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The frame of the bird as a file, and as a phone writes it: lying on its side, with an orientation in its EXIF.

    And one of another film, to which one frame of the bird's film is nearer by far than all others.
    """
    opened = kinodex.open(described)
    (hit,) = opened.search("a black bird at sea", in_="frames", k=1)
    frame, folder, exif = opened.frame(hit).image, tmp_path_factory.mktemp("photographs"), Image.Exif()
    exif[0x0112] = 6
    for name, picture, notes in (
        ("other", opened.frames("film-02", [11.0])[0].image, b""),
        ("upright", frame, b""),
        ("turned", frame.transpose(Image.Transpose.ROTATE_90), exif.tobytes()),
    ):
        content = io.BytesIO()
        picture.save(content, "JPEG", exif=notes, quality=95)
        (folder / f"{name}.jpg").write_bytes(content.getvalue())
    return {path.stem: path for path in folder.iterdir()}


def contract(photographs: dict[str, Path]) -> dict[str, tuple[Asked, Found]]:
    """Each query with the moments that it finds, best first."""
    turned = photographs["turned"]
    return {
        "words everywhere": (Asked("a walrus plays chess"), [("film-02", 29.0, "frames"), WALRUS]),
        "words in pictures": (Asked("a black bird at sea", in_="frames", k=1), [BIRD]),
        "words in words": (Asked("a walrus plays chess", in_="words"), [WALRUS]),
        "words in speech": (Asked("code word", in_="speech"), [("film-01", 12.7, "speech")]),
        "words in captions": (Asked("walrus", in_="captions", k=1), [WALRUS]),
        "a label": (Asked("walrus", in_="detections", k=1), [("film-02", 3.0, "detections")]),
        "times of a video": (
            Asked("a black bird at sea", None, "frames", "film-02", 5.0, 9.0),
            [("film-02", 5.0, "frames"), ("film-02", 7.0, "frames")],
        ),
        "a picture": (Asked(picture=photographs["upright"], k=1), [BIRD]),
        "a picture turned by EXIF": (Asked(picture=turned), [BIRD, ("film-01", 16.0, "frames")]),
        "words and a picture": (Asked("a red boat", turned, "frames", k=1), [BIRD]),
        "words and a picture everywhere": (Asked("a red boat", turned, k=1), [BIRD]),
        "words where a condition holds": (
            Asked("a walrus plays chess", condition="camera = 'front' AND recorded_at >= '2026-03-01T08:00+02:00'"),
            [("film-01", 7.0, "frames"), ("film-01", 4.0, "frames")],
        ),
        "words in words where one holds": (Asked("a walrus plays chess", in_="words", condition="order = 1"), []),
        "words in a named video where one holds": (
            Asked("a walrus", in_="captions", video="film-02", k=1, condition="größe = 'x' AND camera = 'back''s'"),
            [WALRUS],
        ),
        "a picture where a condition holds": (
            Asked(picture=photographs["other"], k=1, condition="order < 2"),
            [("film-01", 20.0, "frames")],
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
def test_every_face_finds_the_same(face: str, filmed: Path, photographs: dict[str, Path], ways: Ways) -> None:
    for name, (asked, expected) in contract(photographs).items():
        found = FACES[face](asked, filmed, ways)
        # of chat the best moment alone: they are 10 s apart there
        assert found in (expected[:1] if face == "chat" else expected, None), f"{name}, by {face}"


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
def test_every_face_says_why_a_condition_cannot_be(
    face: str, filmed: Path, photographs: dict[str, Path], ways: Ways
) -> None:
    """The nearest column, and how many videos there are where it holds for none."""
    picture = photographs["upright"] if face == "chat" else None
    for condition, says in (
        ("camra = 'front'", "there is no column camra; did you mean camera?"),
        ("camera = 'front'; DROP TABLE videos", "; in it; give one expression"),
        ("order > 2", "0 of 3 videos match"),
    ):
        asked = Asked("" if picture else "a walrus", picture, condition=condition)
        if face == "command line":
            bad(ways.kinodex, "search", filmed, asked.words, "--where", condition, code=2, says=says)
            continue
        with pytest.raises((QueryError, AssertionError, ExceptionGroup)) as caught:  # of a reply that is an error
            FACES[face](asked, filmed, ways)
        assert says in "".join(traceback.format_exception(caught.value)), f"{condition}, by {face}"
