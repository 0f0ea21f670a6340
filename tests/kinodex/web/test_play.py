"""Playing: parts of files, streams, captions, children that open files, and all that a request may not reach."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import av
import pytest
from starlette.applications import Starlette

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow, SpeechRow
from kinodex.pipeline.subtitles.cues import parse_cues
from kinodex.pipeline.video_writer import repeat_video
from kinodex.web.play.byte_ranges import Part, choose_part
from kinodex.web.play.captions import captions_vtt
from kinodex.web.play.children import CannotStream, Children, TooManyStreams
from kinodex.web.play.routes import play_routes
from tests.support.libraries.play_library import EVIL, FILM_S, WAYS, library_of_file, write_film
from tests.support.loopback import serve_in_thread

SIZE, TAG = 1000, '"state"'


@contextmanager
def listening(library: Library, children: Children | None = None) -> Iterator[str]:
    """A server of nothing but playing; its host and port."""
    app = Starlette(routes=play_routes([library], children))
    with serve_in_thread(app, socket.create_server(("127.0.0.1", 0))) as address:
        yield address.removeprefix("http://")


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    reply = response.status, response.read()
    connection.close()
    return reply


def playback(client, video_id, query=""):
    reply = client.get(f"/data/libraries/0/videos/{video_id}/playback?{query}")
    assert reply.status == 200, reply.body
    return reply.json


@pytest.mark.slow
def test_the_way_fits_the_file_and_those_that_failed_are_followed_by_the_next(playing, ids):
    for name, way in WAYS.items():
        found = playback(playing, ids[name], "from=5")
        assert (found["way"], bool(found["why"]), found["warning"]) == (way, True, None), name
        assert found["offset_s"] == (0.0 if way == "file" else 5.0), name
    ways = [playback(playing, ids["plain"], f"failed={failed}")["way"] for failed in ("", "file", "file,remuxed")]
    assert ways == ["file", "remuxed", "transcoded"]
    last = playback(playing, ids["plain"], "failed=file,remuxed,transcoded")
    assert (last["way"], last["url"]) == ("slideshow", None)


def test_a_range_header_names_one_part_or_the_whole_file():
    """Also those that try to make a server do too much."""
    whole = Part(0, SIZE, is_whole=True)
    for header, part in (
        ("bytes=0-", Part(0, SIZE)),
        ("bytes=0-0", Part(0, 1)),
        ("bytes=10-19", Part(10, 20)),
        ("Bytes= 10-19 ", Part(10, 20)),
        ("bytes=990-5000", Part(990, SIZE)),
        ("bytes=-1", Part(999, SIZE)),
        ("bytes=-5000", Part(0, SIZE)),
        (f"bytes=5-{'9' * 4000}", Part(5, SIZE)),
        *((behind, None) for behind in ("bytes=1000-", "bytes=5000-6000", "bytes=-0", f"bytes={'9' * 4000}-")),
        *((odd, whole) for odd in (None, "bytes=20-10", "bytes=-", "bytes=--5", "bytes=-5-9", "bytes=a-b", "0-5")),
        *((odd, whole) for odd in ("bytes=0x1-0x9", "bytes=٣-٩", "items=0-5", "bytes=0-1,5-6")),
        ("bytes=" + ",".join(["0-"] * 5000), whole),
    ):
        assert choose_part(header, None, SIZE, TAG) == part, header
    assert choose_part("bytes=5-9", TAG, SIZE, TAG) == Part(5, 10)
    for other in ('"other"', "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert choose_part("bytes=5-9", other, SIZE, TAG) == whole
    assert choose_part("bytes=0-", None, 0, TAG) is choose_part("bytes=-5", None, 0, TAG) is None
    assert choose_part(None, None, 0, TAG) == Part(0, 0, is_whole=True)


@pytest.mark.slow
def test_parts_of_a_file(playing, ids, play_films):
    path, whole = f"/media/0/{ids['plain']}", (play_films / "plain.mp4").read_bytes()
    reply = playing.get(path)
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, whole, "video/mp4")
    assert reply.headers["accept-ranges"] == "bytes" and reply.headers["x-content-type-options"] == "nosniff"
    tag = reply.headers["etag"]
    part = playing.get(path, {"range": "bytes=100-299"})
    assert (part.status, part.body) == (206, whole[100:300])
    assert part.headers["content-range"] == f"bytes 100-299/{len(whole)}"
    assert playing.get(path, {"range": "bytes=-50"}).body == whole[-50:]
    assert playing.get(path, {"range": "bytes=100-299", "if-range": tag}).status == 206
    assert playing.get(path, {"range": "bytes=100-299", "if-range": '"other"'}).status == 200
    beyond = playing.get(path, {"range": f"bytes={len(whole)}-"})
    assert (beyond.status, beyond.body, beyond.headers["content-range"]) == (416, b"", f"bytes */{len(whole)}")
    head = playing.send("HEAD", path, headers={"range": "bytes=100-299"})
    assert (head.status, head.body, head.headers["content-length"]) == (206, b"", "200")
    assert playing.get(path, {"if-none-match": tag}).status == 304
    many = playing.get(path, {"range": "bytes=" + ",".join(f"{n}-{n + 9}" for n in range(0, 5000, 10))})
    assert (many.status, many.body) == (200, whole)


@pytest.mark.slow
def test_a_stream_begins_at_its_time_and_has_the_sound(playing, ids, tmp_path):
    for name in ("packed", "old"):
        reply = playing.get(f"/media/0/{ids[name]}/stream?way={WAYS[name]}&from=5")
        assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4")
        (tmp_path / f"{name}.mp4").write_bytes(reply.body)
        with av.open(str(tmp_path / f"{name}.mp4")) as container:
            assert {stream.type for stream in container.streams} == {"video", "audio"}
            times = [frame.time for frame in container.decode(video=0) if frame.time >= 0]
            assert times[0] == pytest.approx(0.0, abs=0.01) and times[-1] == pytest.approx(FILM_S - 5.1, abs=0.11)
    assert playing.send("HEAD", f"/media/0/{ids['old']}/stream?way=transcoded&from=5").body == b""
    for query in ("", "way=file&from=1", "way=remuxed", "way=remuxed&from=nan", "way=remuxed&from=x"):
        assert playing.get(f"/media/0/{ids['packed']}/stream?{query}").status == 400, query


def line(start_s, end_s, text, speaker=None):
    return SpeechRow("v", start_s, end_s, text, "sidecar", None, speaker)


def test_captions_are_on_the_players_clock_and_text_stays_text(playing, ids):
    reply = playing.get(f"/media/0/{ids['plain']}/captions.vtt?from=1.5")
    assert reply.headers["content-type"].startswith("text/vtt")
    assert reply.body.decode().startswith("WEBVTT\n\n00:00:00.500 --> 00:00:03.500\n")
    assert "</script>" not in reply.body.decode() and EVIL not in reply.body.decode()
    lines = [line(1, 2, "gone"), line(9.5, 12, "hello", "Ann"), line(3700.25, 3701, "late")]
    assert captions_vtt(lines, 10.0) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nAnn: hello\n\n01:01:30.250 --> 01:01:31.000\nlate\n"
    )
    hostile = "a\n\n00:00:09.000 --> 00:00:10.000\n<b>NOTE & STYLE</b>\r\n\r\nWEBVTT"
    text = captions_vtt([line(0, 1, hostile), line(2, 3, "  ")], 0.0)
    (cue,) = parse_cues(text)
    assert (cue.start_s, cue.end_s) == (0.0, 1.0)
    assert text.count("-->") == 1 and "<b>" not in text and "NOTE &amp; STYLE" in text


def test_no_request_names_a_file_or_an_address(playing, ids, play_films):
    """Only the library's own rows are opened; `test_app` tries every path as a place."""
    for place in (str(play_films / "plain.srt").replace("/", "%2f"), "http:%2f%2f127.0.0.1:1%2fx"):
        for path in (f"/media/0/{place}", f"/media/0/{place}/stream?way=remuxed&from=0"):
            assert playing.get(path).status == 404, path
    assert playing.get(f"/media/1/{ids['plain']}").status == 404
    query = "uri=http://127.0.0.1:1/x&url=/etc/passwd&path=/etc/passwd&file=/etc/passwd"
    assert playback(playing, ids["plain"], query)["way"] == "file"
    assert playing.get(f"/media/0/{ids['plain']}?{query}").body[4:8] == b"ftyp"


@pytest.fixture
def own(play_films, tmp_path) -> Iterator[tuple[str, Path, str]]:
    """A library of one film that a test may change: its server, the film, and its path there."""
    film = tmp_path / "own.mp4"
    shutil.copy(play_films / "late.mp4", film)
    library, video_id = library_of_file(tmp_path / "library", film)
    with listening(library) as address:
        yield address, film, video_id


@pytest.mark.slow
def test_a_file_that_changed_or_is_gone_or_is_something_else_is_said(own, play_films):
    address, film, video_id = own
    file = f"/media/0/{video_id}"

    def why() -> tuple[str, str, str | None]:
        status, body = get(address, f"/data/libraries/0/videos/{video_id}/playback")
        assert status == 200, body
        found = json.loads(body)
        return found["way"], found["why"], found["warning"]

    assert why()[::2] == ("file", None)
    os.utime(film, (1, 1))
    warning = why()[2]
    assert warning is not None and "changed since it was indexed" in warning
    assert get(address, file)[0] == 200
    film.write_bytes(b"#EXTM3U\n#EXTINF:1,\nplain.mp4\n#EXT-X-ENDLIST\n")
    assert why()[0] == "slideshow" and "a playlist (hls)" in why()[1] and get(address, file)[0] == 404
    film.write_bytes(b"\x00\x00\x00\x18ftypisom" + b"no video at all " * 100)
    assert why()[0] == "slideshow" and "cannot be opened" in why()[1]
    film.write_text("root:x:0:0: text that a row of a library may name\n")
    for path in (file, f"{file}/stream?way=transcoded&from=0"):
        status, body = get(address, path)
        assert status in (404, 422) and b"root:x" not in body
    film.unlink()
    assert "nothing is there" in why()[1]
    found = json.loads(get(address, f"/data/libraries/0/videos/{video_id}/playback")[1])
    assert found["gone"] == str(film)
    assert found["remedy"].startswith("kinodex relocate ") and found["remedy"].endswith(f" {film.parent} NEW_FOLDER")
    os.mkfifo(film)
    assert "no regular file" in why()[1] and get(address, file)[0] == 404
    film.unlink()
    film.symlink_to("/dev/zero")
    assert "no regular file" in why()[1] and get(address, file)[0] == 404
    film.unlink()
    film.symlink_to(play_films / "plain.mp4")  # an ingest follows links, too
    assert why()[0] == "file" and get(address, file)[1] == (play_films / "plain.mp4").read_bytes()


def note(library: Library, film: Path, video_id: str) -> None:
    """Note that a file holds a video, as an ingest does that has looked into it."""
    state = film.stat()
    row = SourceRow(str(film), video_id, state.st_size, str(state.st_mtime_ns), datetime.now(UTC))
    library.ingest_log.add_sources([row])


@pytest.mark.slow
def test_a_file_that_is_another_video_by_now_is_played_for_that_one_alone(tmp_path, play_films):
    film = Path(shutil.copy(play_films / "plain.mp4", tmp_path / "film.mp4"))
    library, old = library_of_file(tmp_path / "library", film)
    shutil.copy(play_films / "late.mp4", film)
    new = "e" * 32
    assert library.writer.complete([replace(library.video(old), video_id=new)]) == ()
    note(library, film, new)
    with listening(library) as address:

        def played(video_id: str) -> tuple[str, str]:
            found = json.loads(get(address, f"/data/libraries/0/videos/{video_id}/playback")[1])
            return found["way"], found["why"]

        assert played(new)[0] == "file"
        way, why = played(old)
        assert way == "slideshow" and "holds another video by now" in why
        for what in ("", "/stream?way=remuxed&from=1"):
            status, body = get(address, f"/media/0/{old}{what}")
            assert status == 404 and b"holds another video by now" in body
        note(library, Path(shutil.copy(play_films / "plain.mp4", tmp_path)), old)
        assert played(old)[0] == "file", "a copy of the old one, elsewhere"
        assert get(address, f"/media/0/{old}") == (200, (play_films / "plain.mp4").read_bytes())


# Children that open media files: what they find out, and when they end.


@pytest.mark.slow
def test_facts_of_a_film_and_the_fault_of_a_broken_one(play_films, tmp_path):
    (tmp_path / "text.mp4").write_text("no video at all")

    async def ask() -> None:
        children = Children()
        facts = await children.answer({"task": "facts", "uri": str(play_films / "packed.mkv")})
        assert (facts["codec"], facts["sound"], facts["is_first_video"]) == ("h264", "pcm_s16le", True)
        with pytest.raises(CannotStream, match="no video container"):
            await children.answer({"task": "facts", "uri": str(tmp_path / "text.mp4")})

    asyncio.run(ask())


@pytest.fixture(scope="module")
def long_film(tmp_path_factory) -> Path:
    """A film whose stream takes seconds to make, and more than pipes hold."""
    folder: Path = tmp_path_factory.mktemp("long")
    write_film(folder / "short.mp4", "mpeg4", None)
    repeat_video(folder / "short.mp4", folder / "long.mp4", times=50)
    return folder / "long.mp4"


@pytest.mark.slow
def test_a_child_that_is_killed_breaks_its_stream_off_and_one_that_nobody_reads_is_ended(long_film):
    task = {"task": "stream", "uri": str(long_film), "way": "transcoded", "from_s": 0.0, "end_s": 99.0}

    async def stream() -> None:
        children = Children(most=1)
        pieces = children.stream(task)
        assert (await anext(pieces))[4:8] == b"ftyp"
        with pytest.raises(TooManyStreams):
            await anext(children.stream(task))
        (child,) = children.streaming
        child.kill()
        with pytest.raises(CannotStream, match="signal 9"):
            async for _ in pieces:
                pass
        assert not children.streaming
        unread = Children(unread_s=0.1)
        pieces = unread.stream(task)
        await anext(pieces)
        (child,) = unread.streaming
        await child.wait()  # nobody reads any more
        assert child.returncode == -signal.SIGKILL
        await pieces.aclose()

    asyncio.run(stream())


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread; the test's own limit of time ends it."""
    while not is_so():
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_client_that_goes_away_ends_its_child(long_film, tmp_path):
    library, video_id = library_of_file(tmp_path / "library", long_film, "mpeg4")
    children = Children(most=1)
    with listening(library, children) as address:
        path = f"/media/0/{video_id}/stream?way=transcoded&from=0"
        connection = HTTPConnection(address, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.read(8)[4:] == b"ftyp"
        (child,) = children.streaming
        assert get(address, path)[0] == 503, "there is room for one"
        response.close()
        connection.close()
        until(lambda: child.returncode is not None)
        assert child.returncode == -signal.SIGKILL, "it was ended before its work was done"
        until(lambda: not children.streaming)
