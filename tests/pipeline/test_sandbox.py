"""Sampling in a child process: the same frames, and whatever happens to the child, the next video is sampled."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.errors import DecoderDied, DecoderHung, DecoderOutOfMemory, NotAVideo, PipelineError
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk, ChunkSummary, SampledFrame, SamplingSettings, sample_frames
from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler, _Timer
from kinodex.pipeline.sandbox_child import _batches, _reply
from kinodex.pipeline.video_writer import encode_video
from tests.support.ffmpeg import READING, sample_chunk, whole
from tests.support.processes import ending_process
from tests.support.reader_children import child, children, open_fds, running

SHORT = SandboxLimits(base_s=20, silence_s=3)
SMALL_BYTES = 100_000


FEW = replace(READING, fps=0.2)


EVERYTHING = replace(READING, fps=1000, batch=4)
"""Of every frame a picture: enough that a child stands in the middle of them until its parent takes more."""


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Chunk:
    """53 s of pictures of noise: their JPEGs are large enough that a child waits until its parent takes some."""
    path, dice = tmp_path_factory.mktemp("noise") / "noise_53s.mp4", np.random.default_rng(1)
    frames = (dice.integers(0, 255, (144, 256, 3), np.uint8) for _ in range(2 * 53))
    encode_video(frames, path, width_px=256, height_px=144, fps=2)
    return whole(path)


@pytest.fixture
def reader():
    with closing(SandboxSampler(SandboxLimits())) as reader:
        yield reader


def pictures(reader: SandboxSampler, chunk: Chunk, settings: SamplingSettings = READING) -> list[SampledFrame]:
    return [picture for part in reader.sample(chunk, settings) if isinstance(part, list) for picture in part]


def outcome(parts: Any) -> tuple[list[Any], str]:
    """Everything that reading gives, comparable, and the error that it ends with, if it does."""
    found: list[Any] = []
    try:
        for part in parts:
            for each in part if isinstance(part, list) else [part]:
                if isinstance(each, SampledFrame):
                    found.append((*each[:-1], each.model_input.tobytes()))
                else:
                    found.append(replace(each, seconds=dict.fromkeys(each.seconds)))
    except PipelineError as error:
        return found, f"{type(error).__name__} at {error.stage}: {error}"
    return found, ""


@pytest.mark.slow
def test_awkward_files_give_what_reading_in_this_process_gives(media: Path, reader: SandboxSampler) -> None:
    """Those that are quick to decode: of the others come no other messages."""
    small = [path for path in (media / "awkward").iterdir() if path.stat().st_size < SMALL_BYTES]
    paths, errors = sorted(small), set()
    video, gone = whole(paths[0]).video, str(media / "no such file.mp4")
    missing = Chunk(replace(video, path=gone, source=replace(video.source, uri=gone)))
    reading = replace(READING, fps=0.3, batch=3)
    for chunk in (*map(whole, paths), missing):
        here = outcome(sample_chunk(chunk, reading))
        assert outcome(reader.sample(chunk, reading)) == here, chunk.video.path
        errors.add(here[1].partition(" ")[0])
    assert errors >= {"", "NotAVideo", "NoVideoStream", "SourceMissing"}


@pytest.mark.slow
def test_spans_give_what_the_whole_gives(media: Path, reader: SandboxSampler) -> None:
    chunk = whole(media / "clips" / "torchcodec__dog_eating_854132.mp4")
    reading = replace(READING, cut_s=4.0)
    spans = reader.split(chunk, reading)
    assert len(spans) > 1
    parts = [Chunk(chunk.video, span, len(spans), index) for index, span in enumerate(spans)]
    found = [outcome(reader.sample(part, reading))[0] for part in parts]
    *expected, summary = outcome(reader.sample(chunk, reading))[0]
    assert [row for rows in found for row in rows[:-1]] == expected
    assert (found[-1][-1].start_s, found[-1][-1].end_s) == (summary.start_s, summary.end_s)
    assert reader.split(chunk, replace(reading, cut_s=3600.0)) == ()


@pytest.mark.slow
def test_a_video_that_kills_every_child_is_one_failure(noise: Chunk, reader: SandboxSampler) -> None:
    parts = reader.sample(noise, EVERYTHING)
    with pytest.raises(DecoderDied, match=r"noise_53s\.mp4: .* SIGSEGV"):
        for _ in parts:  # some come from the socket after their child is dead
            for pid in children(os.getpid()):
                os.kill(pid, signal.SIGSEGV)
    assert len(pictures(reader, noise, FEW)) == 11


@pytest.mark.slow
def test_what_somebody_killed_is_read_on_from_where_it_was(noise: Chunk, reader: SandboxSampler) -> None:
    parts = reader.sample(noise, replace(READING, decoder="auto", batch=4))
    first = next(parts)
    os.kill(child(), signal.SIGKILL)
    *rest, summary = parts
    numbers = [picture.number for part in [first, *rest] if isinstance(part, list) for picture in part]
    assert numbers == list(range(53))
    assert isinstance(summary, ChunkSummary)
    assert (summary.decoder, summary.fell_back) == ("pyav", None)
    os.kill(child(), signal.SIGKILL)
    assert len(pictures(reader, noise, FEW)) == 11


@pytest.fixture
def endless(noise: Chunk) -> Iterator[Chunk]:
    """A video whose subtitles are on a server that takes requests and says nothing: reading it hangs."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield with_subtitles(noise, f"http://127.0.0.1:{silent.getsockname()[1]}/film.srt")


def with_subtitles(chunk: Chunk, uri: str) -> Chunk:
    video = chunk.video
    return replace(chunk, video=replace(video, source=replace(video.source, sidecars=(uri,))))


@pytest.mark.slow
def test_subtitles_that_hang_do_not_cost_the_video(noise: Chunk, endless: Chunk) -> None:
    with closing(SandboxSampler(SHORT)) as reader:
        *batches, summary = reader.sample(endless, FEW)
        assert children(os.getpid()) == []
        *expected, whole_summary = reader.sample(noise, FEW)
    assert outcome(batches) == outcome(expected)
    assert isinstance(summary, ChunkSummary)
    assert isinstance(whole_summary, ChunkSummary)
    assert summary.subtitle_errors == (
        f"{endless.video.source.uri}: reading its subtitles took longer than it may; repair them, or leave them out",
    )
    assert replace(summary, subtitle_errors=(), seconds={}) == replace(whole_summary, seconds={})


@pytest.mark.slow
def test_long_hostile_subtitles_do_not_cost_the_video(noise: Chunk, reader: SandboxSampler, tmp_path: Path) -> None:
    sidecar = tmp_path / "film.srt"
    for text in (
        "<v " * 150_000,
        "<v" + " " * 400_000,
        "{" * 400_000,
        "a" + "\n" * 400_000 + "b",
        "&#" + "1" * 400_000,
    ):
        sidecar.write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{text}; end\n")
        *_, summary = reader.sample(with_subtitles(noise, str(sidecar)), replace(FEW, fps=0.01))
        assert isinstance(summary, ChunkSummary)
        assert (len(summary.speech), summary.subtitle_errors) == (1, ()), text[:9]


@pytest.mark.slow
def test_a_child_that_stops_is_a_hang_and_one_failure(noise: Chunk) -> None:
    """No second child waits for the same decoder again."""
    with closing(SandboxSampler(SHORT)) as reader:
        pictures(reader, noise, FEW)
        os.kill(child(), signal.SIGSTOP)  # while it waits for a video, not in the middle of a picture
        with pytest.raises(DecoderHung, match=r"noise_53s\.mp4: its decoder returned nothing for 3 s"):
            pictures(reader, noise, replace(EVERYTHING, decoder="auto"))
        assert children(os.getpid()) == []
        assert len(pictures(reader, noise, FEW)) == 11
    slow = SandboxSampler(SandboxLimits(base_s=0.0, per_video_s=0.001))
    with closing(slow), pytest.raises(DecoderHung, match="not enough"):
        pictures(slow, noise)


def test_a_child_that_stops_in_the_middle_of_a_picture_is_a_hang(noise: Chunk) -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50_000))
    with theirs, Connection(ours.detach()) as parent_end:
        theirs.sendall(struct.pack("!i", 1000) + b"the rest never comes")
        with pytest.raises(DecoderHung, match=r"noise_53s\.mp4: its decoder stopped in the middle of a picture"):
            _Timer(SHORT, noise, READING).wait_for(parent_end)


def test_only_waiting_for_the_child_counts(noise: Chunk) -> None:
    """A message that is there at once costs nothing, however long the parent did other things before."""
    frame = SampledFrame(0, 0.0, b"", 1, 1, np.zeros((3, 8, 8), np.uint8))
    timer = _Timer(
        SandboxLimits(base_s=0.2, per_video_s=0.001, silence_s=0.2), replace(noise, video=tiny(noise)), READING
    )
    child_end, parent_end = Pipe()
    for _ in range(3):
        child_end.send([frame])
        threading.Event().wait(0.25)
        assert isinstance(timer.wait_for(parent_end), list)
    with pytest.raises(DecoderHung):
        timer.wait_for(parent_end)


def tiny(chunk: Chunk) -> FetchedVideo:
    return replace(chunk.video, size_bytes=0)


@pytest.mark.slow
def test_too_much_memory_is_one_failure(noise: Chunk, tmp_path: Path) -> None:
    with closing(SandboxSampler(SandboxLimits(memory_bytes=180_000_000))) as reader:
        with pytest.raises(DecoderOutOfMemory, match="more than 180 MB"):
            pictures(reader, whole(huge_video(tmp_path / "huge.mkv")))
        assert len(pictures(reader, noise, FEW)) == 11


def huge_video(path: Path) -> Path:
    """Four frames of 50 MB each in half a megabyte."""
    av = pytest.importorskip("av")
    side_px = 5760
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=1)
        stream.width, stream.height, stream.pix_fmt = side_px, side_px, "yuvj420p"
        frame = av.VideoFrame(side_px, side_px, "yuvj420p")
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        for frame.pts in range(4):
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.slow
def test_a_child_is_small_and_knows_neither_torch_nor_lance(noise: Chunk, reader: SandboxSampler) -> None:
    assert pictures(reader, noise)
    metadata = Path(f"/proc/{child()}")
    assert not [name for name in ("torch", "lance", "arrow") if name in (metadata / "maps").read_text().lower()]
    (peak,) = (line for line in (metadata / "status").read_text().splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 200 * 1024


@pytest.mark.slow
def test_stopping_early_ends_the_child_and_closing_leaves_nothing_behind(noise: Chunk) -> None:
    before = open_fds()
    reader = SandboxSampler(SandboxLimits())
    reader.close()
    parts = reader.sample(noise, EVERYTHING)
    next(parts)
    parts.close()
    assert children(os.getpid()) == []
    assert len(pictures(reader, noise, FEW)) == 11
    reader.close()
    reader.close()
    assert children(os.getpid()) == []
    assert open_fds() == before


@pytest.mark.slow
def test_one_child_serves_all_threads_and_survives_them(noise: Chunk, reader: SandboxSampler) -> None:
    found: list[int] = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.append(len(pictures(reader, noise, FEW))))
        thread.start()
        thread.join()
        found.append(child())
    assert found == [11, found[1], 11, found[1]]


PARENT = """
import os, sys, time
from pathlib import Path
from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler
from tests.support.ffmpeg import READING, whole
from tests.pipeline.test_sandbox import with_subtitles
from tests.support.reader_children import children
reader = SandboxSampler(SandboxLimits())
for part in reader.sample(with_subtitles(whole(Path(sys.argv[1])), sys.argv[2]), READING):
    if part[-1].number >= 47:  # the last but one; then it hangs, as the subtitles come before the end
        print(*children(os.getpid()), flush=True)
"""


@pytest.mark.slow
def test_no_child_outlives_its_parent_even_while_it_hangs(endless: Chunk, root: Path) -> None:
    arguments = [endless.video.path, *endless.video.source.sidecars]
    command = [sys.executable, "-c", PARENT, *arguments]
    with ending_process(command, cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        (pid,) = parent.stdout.readline().split()
        time.sleep(0.3)
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    ends_s = time.monotonic() + 10
    while running(int(pid)) and time.monotonic() < ends_s:
        time.sleep(0.02)
    assert not running(int(pid))


def test_replies_of_the_child(film: Path, tmp_path: Path) -> None:
    """Frames in batches and a summary, spans, or the error as a message."""
    *batches, summary = _reply(("sample", whole(film), replace(READING, batch=5)))
    assert [len(batch) for batch in batches if isinstance(batch, list)] == [5, 5, 2]
    assert isinstance(summary, ChunkSummary) and summary.end_s == 12.0
    (spans,) = _reply(("split", whole(film), replace(READING, cut_s=6.0)))
    assert isinstance(spans, tuple) and len(spans) == 2 and all(isinstance(span, Span) for span in spans)
    (tmp_path / "words.mp4").write_text("only words")
    (message,) = _reply(("sample", whole(tmp_path / "words.mp4"), READING))
    assert isinstance(message, NotAVideo) and "words.mp4" in str(message)
    for max_hold_s, sizes in ((3600.0, [12]), (0.0, [1] * 12)):  # frames that come slowly are not held back
        parts = _batches(sample_frames(whole(film), READING), 16, max_hold_s)
        assert [len(part) for part in parts if isinstance(part, list)] == sizes
