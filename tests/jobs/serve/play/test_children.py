"""Children that open media files: what they find out, and when they end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest

from kinodex.web.play import CannotStream, Children, TooManyStreams
from tests.support.libraries.play_library import library_of_file, write_film
from tests.support.servers.files.play_server import get, listening

pytestmark = pytest.mark.slow


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
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film whose stream takes seconds to make, and more than pipes hold."""
    path = tmp_path_factory.mktemp("long") / "long.avi"
    write_film(path, "mpeg4", None, length_s=600)
    return path


def test_a_child_that_is_killed_breaks_its_stream_off_and_one_that_nobody_reads_is_ended(long_film):
    task = {"task": "stream", "uri": str(long_film), "way": "transcoded", "from_s": 0.0}

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
