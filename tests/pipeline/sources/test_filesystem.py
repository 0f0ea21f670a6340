"""Sources in an S3-compatible store and on the web, over real HTTP: few requests, retries, failures in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from pipeline.errors import SourceForbidden, SourceMissing, SourceUnreachable
from pipeline.sources.discover import Source, list_sources, stamp
from pipeline.sources.fetch import local_copy
from tests.support import s3_server as s3_kit
from tests.support.film_server import FilmHandler


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()  # another test's server may be gone by now
    with s3_kit.s3_server() as address, pytest.MonkeyPatch.context() as patch:
        for name, value in s3_kit.environment(address).items():
            patch.setenv(name, value)
        s3_kit.send(f"{address}/shelf", "PUT")
        for name in ("a.mp4", "a.en.srt", "deep/b.mkv", "deep/b.vtt", "notes.txt"):
            s3_kit.send(f"{address}/shelf/films/{name}", "PUT", name.encode())
        yield address
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_bucket_is_listed_and_stamped_without_asking_for_each_object(
    bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="werkzeug"):
        a, b = list_sources(["s3://shelf/films"])
        stamps = [stamp(a), stamp(b)]
    assert (a.uri, a.sidecars) == ("s3://shelf/films/a.mp4", ("s3://shelf/films/a.en.srt",))
    assert (b.uri, b.sidecars) == ("s3://shelf/films/deep/b.mkv", ("s3://shelf/films/deep/b.vtt",))
    assert [each and each.size_bytes for each in stamps] == [5, 10]
    assert not [line for line in caplog.messages if "HEAD" in line and ".m" in line]
    assert len(caplog.messages) <= 4


def test_an_object_has_the_same_stamp_by_listing_and_by_name_until_it_changes(bucket: str) -> None:
    boto3 = pytest.importorskip("boto3")
    (listed,) = (source for source in list_sources(["s3://shelf/films"]) if source.title == "a")
    (named,) = list_sources(["s3://shelf/films/a.mp4"])
    (matched,) = list_sources(["s3://shelf/films/*.mp4"])
    assert stamp(listed) == stamp(named) == stamp(matched) is not None
    boto3.client("s3").put_object(Bucket="shelf", Key="films/a.mp4", Body=b"other")
    (after,) = list_sources(["s3://shelf/films/a.mp4"])
    assert stamp(after) != stamp(listed)
    with local_copy(after) as path:
        assert path.read_bytes() == b"other"


def test_what_is_not_there_is_missed_in_one_line(bucket: str) -> None:
    for argument in ("s3://shelf/films/none.mp4", "s3://shelf/none/*.mp4", "s3://nowhere/a.mp4"):
        with pytest.raises((SourceMissing, SourceForbidden), match=argument.replace("*", r"\*")) as caught:
            list_sources([argument])
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("uri", ["s3://bucket/film.mp4", "gs://bucket/film.mp4", "nonsense://film.mp4"])
def test_a_protocol_that_cannot_be_spoken_here_says_why(uri: str) -> None:
    package = {"s3": "s3fs", "gs": "gcsfs"}.get(uri.partition(":")[0])
    if package and find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(SourceUnreachable, match=package or "Protocol not known"):
        list_sources([uri])


def test_a_busy_server_is_asked_again(address: str) -> None:
    with local_copy(Source(f"{address}/busy.mp4", "busy")) as path:
        assert path.read_bytes() == FilmHandler.film
    assert FilmHandler.visits == 3


@pytest.mark.parametrize(
    ("name", "error"),
    [("404.mp4", SourceMissing), ("403.mp4", SourceForbidden), ("401.mp4", SourceForbidden),
     ("500.mp4", SourceUnreachable)],
)  # fmt: skip
def test_a_web_address_that_refuses(address: str, name: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught, local_copy(Source(f"{address}/{name}", name)):
        pass
    assert str(caught.value).startswith(f"{address}/{name}: ")
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    pytest.importorskip("aiohttp")
    with pytest.raises(SourceUnreachable), local_copy(Source("http://127.0.0.1:9/film.mp4", "film")):
        pass
