"""A source is identified by its bytes, wherever they are; a remote one is fetched once, over real HTTP."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import fsspec
import pytest

from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.errors import SourceChanged, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.fetch import check_unchanged, content_id, identify, local_copy
from kinodex.pipeline.file_state import differ_by_inode_alone, file_state
from kinodex.pipeline.filesystems import Interrupted, attempt
from kinodex.pipeline.scratch import scratch_folder
from kinodex.pipeline.source import Source, Stamp
from kinodex.pipeline.sources import list_sources
from kinodex.pipeline.stamps import stamp
from tests.support.processes import ending_process
from tests.support.servers import s3_server as s3_kit
from tests.support.servers.files import FilmHandler

pytestmark = pytest.mark.usefixtures("quick_fetches")

WORDS = b"no video, but bytes"


def test_a_local_file_stays_where_it_is_and_is_known_by_its_content(folder: Path, tmp_path: Path) -> None:
    path = folder / "a.mp4"
    found = identify(Source(str(path), "film"), tmp_path / "elsewhere")
    assert (found.path, found.size_bytes, found.video_id) == (str(path), 5, content_id(path))
    assert found.source.stamp is not None  # of the bytes that were hashed
    assert (found.source.stamp.size_bytes, found.source.stamp.mark) == (5, str(path.stat().st_mtime_ns))
    with local_copy(Source(str(path), "a")) as copied:
        assert copied == path
    path.rename(folder / "renamed.mp4")
    assert content_id(folder / "renamed.mp4") == found.video_id != content_id(folder / "film.mp4")
    assert len(found.video_id) == 32
    with pytest.raises(SourceMissing), local_copy(Source(str(path), "a")):
        pass


def test_a_remote_file_is_fetched_under_a_name_of_its_own(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/kinodex/film.mkv", WORDS)
    first, second = (identify(Source("memory://kinodex/film.mkv", "film"), tmp_path) for _ in range(2))
    assert first.path != second.path
    assert first.video_id == second.video_id
    for each in (first, second):
        path = Path(each.path)
        assert (path.parent, path.suffix, path.read_bytes()) == (tmp_path, ".mkv", WORDS)


def test_what_is_no_file_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "film.mp4")
    for uri, error, message in (
        (str(tmp_path / "film.mp4"), SourceMissing, "no regular file, but a pipe"),
        (f"/tmp/{'x' * 300}.mp4", SourceUnreachable, "File name too long"),
        ("memory://kinodex/nothing.mp4", SourceMissing, "nothing is there"),
        ("/no/such/film.mp4", SourceMissing, "nothing is there"),
    ):
        with pytest.raises(error, match=message):
            identify(Source(uri, "film"), tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["film.mp4"]


def test_a_stamp_changes_with_the_file(folder: Path) -> None:
    (film,) = list_sources([str(folder / "film.mp4")])
    before = stamp(film)
    assert before is not None
    assert (before.size_bytes, before.mark) == (8, str((folder / "film.mp4").stat().st_mtime_ns))
    assert stamp(film) == before
    (folder / "film.mp4").write_bytes(b"film.mp5")
    assert stamp(film) != before
    (folder / "film.mp4").unlink()
    with pytest.raises(SourceMissing, match=r"film\.mp4"):
        stamp(film)


def test_a_web_address_is_fetched_and_has_a_stamp_if_the_server_tells_one(address: str) -> None:
    (source,) = list_sources([f"{address}/film.mp4?token=1"])
    assert source.title == "film"
    with local_copy(source) as path:
        assert (path.read_bytes(), path.suffix) == (FilmHandler.film, ".mp4")
    marked, plain = list_sources([f"{address}/marked.mp4", f"{address}/plain.mp4"])
    assert stamp(marked) == Stamp(len(FilmHandler.film), "first")
    assert stamp(plain) is None


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


def test_a_busy_server_is_asked_again(address: str) -> None:
    with local_copy(Source(f"{address}/busy.mp4", "busy")) as path:
        assert path.read_bytes() == FilmHandler.film
    assert FilmHandler.visits == 3


def test_a_web_address_that_refuses(address: str, tmp_path: Path) -> None:
    for name, error in {
        "404.mp4": SourceMissing, "403.mp4": SourceForbidden, "401.mp4": SourceForbidden, "500.mp4": SourceUnreachable,
    }.items():  # fmt: skip
        with pytest.raises(error) as caught, local_copy(Source(f"{address}/{name}", name)):
            pass
        assert str(caught.value).startswith(f"{address}/{name}: ") and "\n" not in str(caught.value)
    # A later command knows the address without what granted access in it: `add speech`, `--retry-failed`.
    with pytest.raises(SourceForbidden, match="not kept: name the source again with them, or give them by FSSPEC_HTTP"):
        identify(Source(f"{address}/401.mp4", "film"), tmp_path)
    with pytest.raises(SourceUnreachable), local_copy(Source("http://127.0.0.1:9/film.mp4", "film")):
        pass  # nobody is there


HOLD = """
from kinodex.pipeline.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "film.mp4").write_bytes(b"fetched")
    print(folder, flush=True)
    input()
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_holds_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    of_the_user = tmp_path / "kinodex-films"
    of_the_user.mkdir()
    with ending_process([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        left = Path(run.stdout.readline().strip())
        with scratch_folder():
            assert (left / "film.mp4").read_bytes() == b"fetched"
        run.kill()
        run.wait()
        assert (left / "film.mp4").exists()
        with scratch_folder() as mine:
            assert set(tmp_path.iterdir()) == {of_the_user, mine}
    assert list(tmp_path.iterdir()) == [of_the_user]


def swap(path: Path) -> None:
    other = path.with_name("other.mp4")
    other.write_bytes(b"other")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


def write_in_place_and_put_the_time_back(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_and_put_back(path: Path) -> None:
    kept = path.rename(path.with_name("kept.mp4"))
    path.write_bytes(b"other")
    kept.replace(path)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def test_a_file_that_anybody_wrote_to_has_another_state(tmp_path: Path) -> None:
    """Even if its size and time of change are put back."""
    path = tmp_path / "film.mp4"
    for change in (swap, write_in_place_and_put_the_time_back, swap_and_put_back, append, Path.unlink):
        path.write_bytes(b"first")
        video = identify(Source(str(path), "film"), tmp_path)
        check_unchanged(video)
        wait_for_another_tick(path)
        change(path)
        error: type[Exception] = SourceChanged
        message = r"film\.mp4: the file was changed or replaced while it was read"
        if change is Path.unlink:
            error, message = SourceMissing, "nothing is there"
        with pytest.raises(error, match=message):
            check_unchanged(video)


def wait_for_another_tick(path: Path) -> None:
    """Touch a file beside this one until the kernel's clock, which stamps files, has moved on."""
    probe = path.with_name("clock")
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > path.stat().st_ctime_ns:
            return


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read everything, so become someone who may not."""
    pytest.importorskip("av")  # nobody may be unable to import it
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_no_permission(folder: Path, nobody: None) -> None:
    if os.getuid() != 0:
        (folder / "a.mp4").chmod(0)
    with pytest.raises(SourceForbidden, match="not permitted"), local_copy(Source(str(folder / "a.mp4"), "a")):
        pass
    with pytest.raises(SourceForbidden, match="not permitted"):
        probe(folder / "a.mp4")


@pytest.mark.parametrize("uri", ["s3://bucket/film.mp4", "gs://bucket/film.mp4", "nonsense://film.mp4"])
def test_a_protocol_that_cannot_be_spoken_here_says_why(uri: str) -> None:
    package = {"s3": "s3fs", "gs": "gcsfs"}.get(uri.partition(":")[0])
    if package and find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(SourceUnreachable, match=package or "Protocol not known"):
        list_sources([uri])


@pytest.fixture(params=[b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nETag: first\r\n\r\nhalf"])
def silent(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that takes every request, sends the beginning of a reply or nothing, and then is silent."""
    pytest.importorskip("aiohttp")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server, ExitStack() as accepted:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # shut down
                accepted.enter_context(connection)
                connection.sendall(request.param)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/film.mp4"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_silent_server_is_given_up(silent: str) -> None:
    """Without a limit it holds a worker for five minutes in each of four tries."""
    source = Source(silent, "film", timeout_s=0.2)
    message = rf"^{silent}: its server sent nothing for too long, in 4 tries; .*--source-timeout"
    with pytest.raises(SourceUnreachable, match=message), local_copy(source):
        pass


def test_an_inode_that_alone_differs_leaves_the_bytes_to_decide(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"first")
    video = identify(Source(str(path), "film"), tmp_path)
    (state,) = video.states
    renumbered = replace(state, inode=state.inode + 1)
    assert differ_by_inode_alone(renumbered, file_state(path))
    check_unchanged(replace(video, states=(renumbered,)))
    with pytest.raises(SourceChanged):
        check_unchanged(replace(video, states=(renumbered,), video_id="0" * 32))
    assert not differ_by_inode_alone(replace(renumbered, mtime_ns=1), file_state(path))
    assert not differ_by_inode_alone(state, state)


def test_work_that_nobody_wants_is_given_up_between_two_blocks_and_ctrl_c_is_not_tried_again(tmp_path: Path) -> None:
    large = tmp_path / "large.mp4"
    with large.open("wb") as file:
        file.truncate(2**40)
    blocks = count()

    def check() -> None:
        if next(blocks) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        identify(Source(str(large), "large"), tmp_path, check=check)
    assert next(blocks) == 4
    pressed = []

    def press() -> None:
        pressed.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt("film.mp4", press)
    assert len(pressed) == 1


def test_a_download_that_nobody_wants_leaves_nothing(address: str, tmp_path: Path) -> None:
    def check() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        identify(Source(f"{address}/film.mp4", "film"), tmp_path, check=check)
    assert list(tmp_path.iterdir()) == []
