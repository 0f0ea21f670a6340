"""Playing over HTTP: parts of files, streams, and all that a request may not reach."""

from __future__ import annotations

import json
import os
import shutil

import av
import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from tests.support.libraries.play_library import EVIL, FILM_S, WAYS, library_of_file
from tests.support.servers.files.play_server import get, listening


@pytest.fixture(scope="module")
def plain(ids, play_films) -> tuple[str, bytes]:
    """Path of a film on the server, and its bytes."""
    return f"/media/0/{ids['plain']}", (play_films / "plain.mp4").read_bytes()


def playback(client, video_id, query=""):
    reply = client.get(f"/data/libraries/0/videos/{video_id}/playback?{query}")
    assert reply.status == 200, reply.body
    return reply.json


@pytest.mark.parametrize("name", WAYS)
def test_the_way_fits_the_file_and_says_why(playing, ids, name):
    found = playback(playing, ids[name], "from=5")
    assert found["way"] == WAYS[name] and found["why"] and found["warning"] is None
    assert found["offset_s"] == (0.0 if found["way"] == "file" else 5.0)


def test_ways_that_failed_are_followed_by_the_next(playing, ids):
    ways = [playback(playing, ids["plain"], f"failed={failed}")["way"] for failed in ("", "file", "file,remuxed")]
    assert ways == ["file", "remuxed", "transcoded"]
    last = playback(playing, ids["plain"], "failed=file,remuxed,transcoded")
    assert (last["way"], last["url"]) == ("slideshow", None)


def test_parts_of_a_file(playing, plain):
    path, whole = plain
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


@pytest.mark.parametrize("query", ["", "way=file&from=1", "way=remuxed", "way=remuxed&from=nan", "way=remuxed&from=x"])
def test_streams_are_asked_for_in_one_way_only(playing, ids, query):
    assert playing.get(f"/media/0/{ids['packed']}/stream?{query}").status == 400


def test_captions_are_on_the_streams_clock(playing, ids):
    reply = playing.get(f"/media/0/{ids['plain']}/captions.vtt?from=1.5")
    assert reply.headers["content-type"].startswith("text/vtt")
    assert reply.body.decode().startswith("WEBVTT\n\n00:00:00.500 --> 00:00:03.500\n")
    assert "</script>" not in reply.body.decode() and EVIL not in reply.body.decode()


def test_no_request_names_a_file_or_an_address(playing, ids, tmp_path, play_films):
    """Every path and parameter that a request has is tried as a place; only the library's own rows are opened."""
    secret = play_films / "plain.srt"
    for place in (
        f"..%2f..%2f{secret.name}",
        "%2fetc%2fpasswd",
        str(secret).replace("/", "%2f"),
        "http:%2f%2f127.0.0.1:1%2fx",
        f"{ids['plain']}%00",
        f"{ids['plain']}/../../../etc/passwd",
    ):
        for path in (f"/media/0/{place}", f"/media/0/{place}/stream?way=remuxed&from=0"):
            reply = playing.get(path)
            assert reply.status == 404 and b"root:" not in reply.body, path
    assert playing.get(f"/media/1/{ids['plain']}").status == 404
    query = "uri=http://127.0.0.1:1/x&url=/etc/passwd&path=/etc/passwd&file=/etc/passwd"
    assert playback(playing, ids["plain"], query)["way"] == "file"
    assert playing.get(f"/media/0/{ids['plain']}?{query}").body[4:8] == b"ftyp"


@pytest.fixture
def own(play_films, tmp_path):
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
    os.mkfifo(film)
    assert "no regular file" in why()[1] and get(address, file)[0] == 404
    film.unlink()
    film.symlink_to("/dev/zero")
    assert "no regular file" in why()[1] and get(address, file)[0] == 404
    film.unlink()
    film.symlink_to(play_films / "plain.mp4")  # an ingest follows links, too
    assert why()[0] == "file" and get(address, file)[1] == (play_films / "plain.mp4").read_bytes()


@pytest.mark.slow
def test_a_file_that_is_another_video_by_now_is_played_for_that_one_alone(tmp_path, play_films):
    film, to = tmp_path / "film.mp4", str(tmp_path / "library")
    for name in ("plain", "late"):
        shutil.copy(play_films / f"{name}.mp4", film)
        run_ingest(IngestConfig(space="builtin"), list_sources([str(film)]), to)
    old, new = sorted(Library.open(to).videos(), key=lambda row: row.ingested_at)
    with listening(Library.open(to)) as address:

        def played(video_id: str) -> tuple[str, str]:
            found = json.loads(get(address, f"/data/libraries/0/videos/{video_id}/playback")[1])
            return found["way"], found["why"]

        assert played(new.video_id)[0] == "file"
        way, why = played(old.video_id)
        assert way == "slideshow" and "holds another video by now" in why
        for what in ("", "/stream?way=remuxed&from=1"):
            status, body = get(address, f"/media/0/{old.video_id}{what}")
            assert status == 404 and b"holds another video by now" in body
        run_ingest(IngestConfig(space="builtin"), list_sources([shutil.copy(play_films / "plain.mp4", tmp_path)]), to)
        assert played(old.video_id)[0] == "file", "a copy of the old one, elsewhere"
        assert get(address, f"/media/0/{old.video_id}") == (200, (play_films / "plain.mp4").read_bytes())
