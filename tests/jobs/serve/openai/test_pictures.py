"""Pictures of a request: only what is in the request itself is read, and it is found again in the library."""

from __future__ import annotations

import asyncio
import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from kinodex.index.library import Library
from kinodex.web.openai_chat import (
    MOMENTS,
    MOST_PICTURES,
    PICTURES,
    VIDEOS,
    Moment,
    PictureSearch,
    RequestRefused,
    in_words,
    read_picture,
    spread,
)


def as_url(encoded: bytes, kind: str = "jpeg") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(encoded).decode()}"


def png(width: int = 4, height: int = 2) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), (1, 2, 3)).save(written, "PNG")
    return written.getvalue()


def test_a_picture_in_the_request_is_decoded() -> None:
    picture = read_picture(as_url(png(), "png"))
    assert picture.shape == (2, 4, 3)
    assert picture[0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.png",
        "https://example.com/x.png",
        "file:///etc/passwd",
        "/etc/passwd",
        "data:text/html;base64,AA==",
        "HTTP://169.254.169.254/latest/meta-data",
    ],
)
def test_no_address_is_fetched(url: str) -> None:
    with pytest.raises(RequestRefused, match="addresses are not fetched") as caught:
        read_picture(url)
    assert caught.value.code == "invalid_image_url"


@pytest.mark.parametrize("content", [b"", b"no picture", png()[:40], b"<svg xmlns='http://www.w3.org/2000/svg'/>"])
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(RequestRefused, match="cannot read the picture") as caught:
        read_picture(as_url(content))
    assert "0x" not in str(caught.value), "the address of an object"
    with pytest.raises(RequestRefused, match="cannot read the picture"):
        read_picture("data:image/png;base64,%%%")


def test_a_photo_stands_as_its_camera_was_held() -> None:
    exif, written = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6  # turned by a quarter
    Image.new("RGB", (4, 2)).save(written, "JPEG", exif=exif)
    assert read_picture(as_url(written.getvalue())).shape == (4, 2, 3)


def test_a_picture_that_would_fill_the_memory_is_refused() -> None:
    written = io.BytesIO()
    Image.new("1", (8000, 8000)).save(written, "PNG")
    assert len(written.getvalue()) < 100_000
    with pytest.raises(RequestRefused, match="8000 x 8000 pixels; give one of at most"):
        read_picture(as_url(written.getvalue()))


def test_of_many_pictures_some_are_taken_evenly() -> None:
    urls = [str(number) for number in range(64)]
    chosen = spread(urls)
    assert (len(chosen), chosen[0], chosen[-1]) == (PICTURES, "0", "63")
    assert spread(urls[:3]) == urls[:3]
    with pytest.raises(RequestRefused, match="at most 256"):
        spread(["x"] * (MOST_PICTURES + 1))


def test_stored_frames_are_found_where_they_are(library: Path) -> None:
    opened = Library.open(str(library))
    rows = opened.videos()
    frames = [opened.frames_at(row.video_id, [14.0])[0] for row in rows[:2]]
    search = PictureSearch([str(library)], None)
    urls = [as_url(frame.jpeg) for frame in frames]

    async def both() -> tuple[list[Moment], list[Moment], list[Moment]]:
        whole = await search.moments(0, urls, [])
        part = await search.moments(0, urls[:1], [rows[1].video_id])
        return whole, part, await search.moments(0, [], [])

    whole, part, none = asyncio.run(both())
    assert {(each.video_id, each.time_s) for each in whole[:2]} == {(each.video_id, each.time_s) for each in frames}
    assert all(each.score > 0.98 for each in whole[:2])
    assert len(whole) <= MOMENTS and len({each.video_id for each in whole}) <= VIDEOS
    assert {each.video_id for each in part} == {rows[1].video_id}
    assert none == []


def test_moments_in_words() -> None:
    moments = [Moment("a", "walk", 31.5, 0.9), Moment("b", "sea", 3723.0, 0.5)]
    assert in_words(moments, 1) == (
        "With the question came a picture; it is most like these moments: 'walk' at 0:31; 'sea' at 1:02:03."
    )
    assert in_words(moments[:1], 3).startswith("With the question came 3 pictures; they are most like")
