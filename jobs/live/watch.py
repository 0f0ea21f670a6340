"""The watch of a source that grows: read in a thread, opened again where it stops, written every few seconds."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass

from kinodex.index.library import Library
from kinodex.index.store.leases import awaited_lease
from kinodex.index.sweep import sweep
from kinodex.jobs.default_space import with_space
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run_rows import LEASE
from kinodex.jobs.live.source import LiveSource, NewRows
from kinodex.jobs.live.writer import KIND, OWNER, Writer
from kinodex.jobs.standing_queries import StandingQueries
from kinodex.jobs.towers.carried import begin_carrying, log_notes
from kinodex.jobs.towers.embedder import load_embedder
from kinodex.pipeline.errors import PipelineError, PlaylistRefused
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.live.beats import Beat, is_live_address
from kinodex.pipeline.sample import Chunk
from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler
from kinodex.pipeline.source import Source

SCHEMES = ("http", "https", "rtsp", "rtsps")
LOOK_S = 0.25
WAITING_BEATS = 2000
"""Beats that wait while another run holds the library; then the source waits."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0


def watch_live(
    config: IngestConfig,
    live: LiveSource,
    uri: str,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_rows: Callable[[NewRows], None] = lambda rows: None,
    on_wait: Callable[[str], None] = lambda reason: None,
    queries: StandingQueries | None = None,
) -> None:
    """Put the frames of a source into the library at `uri` as they come, until it ends or `stop` says so.

    A source that was read once and cannot be any more is opened again, after longer and longer pauses; `on_wait` gets
    the reasons. Raises a PipelineError for one that cannot be read at first, LibraryBusy for a name that is watched
    already, and as an ingest does.
    """
    if not live.is_file and live.address.partition("://")[0].lower() not in SCHEMES:
        raise UsageError(f"got {live.uri} to watch; give a local file, an HLS playlist (http) or an rtsp:// address")
    config = with_space(config, uri)
    library = Library.open(uri) if Library.exists(uri) else None
    space = load_embedder(config.space, config.device, library)
    library = Library.open_or_create(uri, asdict(config.settings()), space.fingerprint)
    with ExitStack() as stack:
        stack.enter_context(library.lease(f"{KIND} {live.called}", OWNER))
        stack.enter_context(space.threads(1))
        carried = begin_carrying(library.uri, space.fingerprint, config.towers)
        with awaited_lease(library.tables, LEASE, OWNER, math.inf):
            sweep(library)
        log_notes(carried())
        writer = Writer(library, live, config, space, on_rows, on_wait, queries)
        stack.callback(writer.close)
        _read_on(config, live, writer, stop, on_wait)


def _read_on(
    config: IngestConfig,
    live: LiveSource,
    writer: Writer,
    stop: Callable[[], bool],
    on_wait: Callable[[str], None],
) -> None:
    """Read a source, and open a stream again whenever it ends or fails."""
    pause_s, said = SHORTEST_PAUSE_S, ""
    while not stop():
        reason, read = f"{live.uri}: the stream ended", writer.frames
        try:
            _read(config, live, writer, stop)
            if not is_live_address(live.address):
                writer.note_end()
                return
        except PipelineError as error:
            if writer.part is None or live.is_file or isinstance(error, PlaylistRefused):
                raise
            reason = str(error)
        is_new = writer.frames > read
        pause_s = SHORTEST_PAUSE_S if is_new else min(2 * pause_s, LONGEST_PAUSE_S)
        if (is_new or reason != said) and not stop():
            on_wait(f"{reason}; it is opened again")
        said, until = reason, time.monotonic() + pause_s
        while time.monotonic() < until and not stop():
            time.sleep(LOOK_S)


def _read(config: IngestConfig, live: LiveSource, writer: Writer, stop: Callable[[], bool]) -> None:
    """Read a source until it ends or stops, and have its frames written every few seconds."""
    waiting: list[Beat] = []
    since, end = time.monotonic(), None
    with _beats(config, live, writer) as beats:
        while end is None and not stop():
            came: Beat | _End | None = None
            if len(waiting) < WAITING_BEATS:
                with suppress(queue.Empty):
                    came = beats.get(timeout=LOOK_S)
            else:
                time.sleep(LOOK_S)
            if isinstance(came, Beat):
                since = since if waiting else time.monotonic()
                waiting.append(came)
            elif came is not None:
                end = came
            if waiting and time.monotonic() - since >= live.flush_s:
                waiting, since = writer.write(waiting), time.monotonic()
            writer.send()
    while (waiting := writer.write(waiting)) and not stop():
        time.sleep(LOOK_S)
    if end is not None and end.error is not None:
        raise end.error


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


@contextmanager
def _beats(config: IngestConfig, live: LiveSource, writer: Writer) -> Iterator[queue.Queue[Beat | _End]]:
    """Read a source in a thread, and there in a child process: beats, and how it ended."""
    beats: queue.Queue[Beat | _End] = queue.Queue(WAITING_BEATS)
    source = Source(live.uri, live.called, timeout_s=live.stall_s)
    chunk = Chunk(FetchedVideo(source, live.address, "", 0))
    limits = SandboxLimits(math.inf, 0.0, 2 * live.stall_s + 30, config.video_memory_mb * 1_000_000)
    sampler, over = SandboxSampler(limits), threading.Event()
    resume = writer.resume()

    def read() -> None:
        end = _End()
        try:
            with closing(sampler.follow(chunk, writer.sampling, resume)) as found:
                for beat in found:
                    beats.put(beat)
                    if over.is_set():
                        return
        except BaseException as error:
            end = _End(error)
        beats.put(end)

    thread = threading.Thread(target=read, name="live", daemon=True)
    thread.start()
    try:
        yield beats
    finally:
        over.set()
        sampler.close()
        while thread.is_alive():
            with suppress(queue.Empty):  # it may wait for room
                beats.get(timeout=LOOK_S)
