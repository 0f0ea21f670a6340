"""Moments to download from `kinodex serve`: every kind, its name and type, and what is refused."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import av
import pytest
import webvtt

from kinodex.index.library import Library
from kinodex.web.take_away import MOST_CLIP_S
from tests.support.servers.serve_server import Client, Reply


@pytest.fixture(scope="module")
def video(library: Path) -> str:
    return Library.open(str(library)).video("film-01").video_id


def export(client: Client, kind: str, **query: str) -> Reply:
    return client.get(f"/data/libraries/0/export/{kind}?{urlencode(query)}")


@pytest.mark.slow
def test_a_clip_is_a_film_of_its_ranges(client, video):
    reply = export(client, "clip", video=video, ranges="2.5-4,10-11")
    assert (reply.status, reply.headers["content-type"]) == (200, "video/mp4"), reply.body[:300]
    assert reply.headers["content-disposition"].startswith('attachment; filename="film-01_00h00m02.500s.mp4"')
    assert reply.headers["x-content-type-options"] == "nosniff"
    with av.open(io.BytesIO(reply.body), "r") as container:
        times = [frame.time or 0.0 for frame in container.decode(video=0)]
    assert times[-1] == pytest.approx(2.5, abs=0.2)


def test_texts_of_a_range(client, video):
    said = export(client, "vtt", video=video, ranges="10-20")
    (cue,) = webvtt.from_string(said.body.decode()).captions
    assert "code word" in cue.text
    assert said.headers["content-type"].startswith("text/vtt")
    labelled = export(client, "srt", video=video, ranges="10-20", label="a label")
    assert b"a label" in labelled.body and b"code word" not in labelled.body
    assert b"FROM CLIP NAME:  film-01" in export(client, "edl", video=video, ranges="1-2").body
    assert export(client, "otio", video=video, ranges="1-2").json["name"] == "film-01"
    assert b"film-01" in export(client, "csv", video=video).body
    rows = [json.loads(line) for line in export(client, "jsonl", video=video, ranges="1-2,4-99").body.splitlines()]
    assert [row["start_s"] for row in rows] == [1.0, 4.0]
    assert rows[1]["end_s"] < 99


def test_what_makes_no_sense_is_refused(client, video):
    for kind, query, status, says in (
        ("csv", {"ranges": "2-1"}, 400, "its end has to come after its beginning"),
        ("csv", {"ranges": "a-b"}, 400, "write it as 12.5-20"),
        ("csv", {"ranges": "1-inf"}, 400, "write it as 12.5-20"),
        ("csv", {"ranges": "1-2," * 101}, 400, "at most 100 are taken"),
        ("csv", {"ranges": "500-600"}, 404, "outside the video"),
        ("vtt", {"ranges": "9-9.5"}, 404, "nothing is said there"),
        ("csv", {"video": "film-01"}, 404, "which the library does not hold; give its id"),
        ("csv", {"video": "../../etc/passwd"}, 404, "which the library does not hold"),
        ("hf", {}, 404, "it is one of clip"),
        ("clip", {"ranges": ",".join(["0-30"] * 21)}, 400, f"a page gets clips of {MOST_CLIP_S / 60:.0f}"),
    ):
        reply = export(client, kind, **{"video": video, **query})
        assert (reply.status, says in reply.json["error"]) == (status, True), (kind, query, reply.body)
    assert client.get(f"/data/libraries/7/export/csv?video={video}").status == 404


@pytest.mark.slow
def test_a_clip_for_a_client_who_left_is_not_cut_to_the_end(client, video):
    """Also not one that waits for its turn; and the next is cut at once."""

    def cutting() -> list[str]:
        lines = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has just ended
                lines.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        return [line for line in lines if "ranges.jsonl" in line]

    def until(is_so: Callable[[], bool]) -> None:
        while not is_so():  # pytest's own limit ends it
            time.sleep(0.02)

    path = f"/data/libraries/0/export/clip?video={video}&ranges={','.join(['0-27'] * 20)}"
    waiting = [client.connect() for _ in range(2)]
    for each in waiting:
        each.request("GET", path)
    until(lambda: bool(cutting()))
    for each in waiting:
        each.sock.close()
        each.close()
    until(lambda: not cutting())
    assert export(client, "clip", video=video, ranges="1-2").status == 200
    assert cutting() == []
