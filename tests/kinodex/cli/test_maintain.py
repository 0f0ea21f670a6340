"""`kinodex maintain`: what is wrong is found, leftovers go, and nobody who is at work is disturbed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.rows import NoteRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.frame_keys import frame_key
from kinodex.index.store.schema import CHECKSUM, vectors_table
from kinodex.index.sweep import audit
from tests.support.command import Kinodex, bad
from tests.support.libraries.random_library import (
    SETTINGS,
    caption,
    detection,
    fingerprint,
    made,
    other_space,
    spoken,
    unit_vectors,
    vectors_of,
    write,
)
from tests.support.screen_text.lines import Line

OTHER = other_space()
STAGE_MODELS = {"captions": "m", "detections": "m", "speech": "m", "screen_text": "m", "vectors": OTHER.digest}
VIDEOS = ("aaaa", "bbbb", "cccc")
FRAMES = 5


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos; every stage was added to the first two, and a caption of a part of the first is kept."""
    library = Library.create(str(tmp_path_factory.mktemp("original") / "library"), SETTINGS, fingerprint())
    for seed, video_id in enumerate(VIDEOS):
        write(library, made(video_id, FRAMES, seed, lines=((0.0, 1.0, "hello"),)))
    library.additions.add_space(OTHER)
    library.additions.discard_leftovers("screen_text", "m")  # which makes the table
    for stage in STAGE_MODELS:
        add(library, stage, *VIDEOS[:2])
        library.additions.complete(stage, STAGE_MODELS[stage], dict.fromkeys(VIDEOS[:2], rows_of(stage)), {})
    library.notes.add([NoteRow("aaaa", "m", 0.0, 1.0, "a kite", None, 2)])
    return Path(library.uri)


@pytest.fixture
def library(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


@pytest.fixture
def tables(library: Library) -> Tables:
    return Tables(library.uri)


def rows_of(stage: str) -> int:
    return FRAMES if stage == "vectors" else 2


def add(library: Library, stage: str, *video_ids: str) -> None:
    """Write a stage's rows of videos, and do not complete them."""
    captions = [caption(0, "a kite"), caption(1, "a boat")]
    detections = [detection(0, "kite", 0.9), detection(0, "kite", 0.8)]
    lines = [spoken(0, "one"), spoken(1, "two")]
    shown = [Line(0.0, 1.0, "one"), Line(1.0, 2.0, "two")]
    adders: dict[str, Callable[[], None]] = {
        "captions": lambda: library.additions.add_captions(dict.fromkeys(video_ids, captions), "m"),
        "detections": lambda: library.additions.add_detections(dict.fromkeys(video_ids, detections), "m"),
        "speech": lambda: library.additions.add_speech(dict.fromkeys(video_ids, lines), "m"),
        "screen_text": lambda: library.lines.add("screen_text", dict.fromkeys(video_ids, shown), "m"),
        "vectors": lambda: library.additions.add_vectors(dict.fromkeys(video_ids, vectors_of(FRAMES, 1)), OTHER),
    }
    adders[stage]()


def checked(kinodex: Kinodex, library: Library, *options: str) -> tuple[int, dict]:
    ran = kinodex("maintain", library.uri, "--json", *options)
    return ran.code, json.loads(ran.out)


@pytest.mark.slow
def test_a_look_changes_nothing_maintenance_removes_leftovers_and_what_is_in_order_stays(
    kinodex: Kinodex, library: Library
) -> None:
    write(library, made("left", 7, seed=8), complete=False)
    for stage in STAGE_MODELS:
        add(library, stage, "cccc", "nobody")
    code, told = checked(kinodex, library, "--check")
    assert (code, told["health"]["audit"]["orphans"]) == (3, ["left"])
    leftovers = told["health"]["audit"]["added"]["leftovers"]
    left = {each["stage"]: each["video_ids"] for each in leftovers}
    assert left == {stage: ["cccc", "nobody"] for stage in STAGE_MODELS} and len(leftovers) == len(left)
    again = kinodex("maintain", library.uri, "--check")
    assert again.code == 3 and "video nobody has detections by m without its addition" in again.out
    assert f"`kinodex maintain {library.uri}` removes them" in again.out

    code, told = checked(kinodex, library)
    assert (code, told["problems"], told["notes"], told["removed"]["orphans"]) == (0, [], [], ["left"])
    frames = next(each for each in told["health"]["tables"] if each["name"] == "frames")
    assert (frames["rows"], told["health"]["audit"]["videos"]) == (len(VIDEOS) * FRAMES, len(VIDEOS))
    for stage, model in STAGE_MODELS.items():
        assert [row.video_id for row in library.additions.pending(stage, model)] == ["cccc"]
    assert [each.text for each in library.captions("aaaa")] == ["a kite", "a boat"]
    assert "every row belongs to a complete video or addition" in kinodex("maintain", library.uri).out


@pytest.mark.slow
def test_what_lost_rows_or_was_altered_goes_only_when_asked(kinodex: Kinodex, library: Library, tables: Tables) -> None:
    """Of `aaaa` a frame is lost, of `bbbb` what stages added, and `cccc` has a picture altered, and rows twice."""
    tables.delete("frames", equal("video_id", "aaaa") & equal("frame_no", 3))
    for stage in STAGE_MODELS:
        table = {"vectors": vectors_table(OTHER)}.get(stage, stage)
        of_second = equal("video_id", "bbbb")
        tables.delete(table, of_second if stage == "vectors" else of_second & equal("model", "m"))
    library.writer.add_frames({"cccc": made("cccc", FRAMES, seed=2).frame_rows()[:2]})  # by a run taken for dead
    code, told = checked(kinodex, library)
    assert (code, len(told["problems"]), told["removed"]["doubled"]) == (3, 1 + len(STAGE_MODELS), ["cccc"])
    tables.update("frames", equal("frame_key", frame_key("cccc", 3)), {CHECKSUM: 1})
    looked, deep = (kinodex("maintain", library.uri, "--check", *how) for how in ((), ("--deep",)))
    assert (looked.code, deep.code) == (3, 3) and "are not as they were written" not in looked.out
    assert f"{1 + len(STAGE_MODELS)} wrong:\n  video aaaa has other rows than its own row promises" in looked.out
    for stage, model in STAGE_MODELS.items():
        assert f"  video bbbb has {stage} by {model} other than was added" in looked.out
    assert f"`kinodex maintain {library.uri} --discard-broken`" in looked.out
    assert "video cccc has pictures that are not as they were written" in deep.out
    assert f"`kinodex maintain {library.uri} --deep --discard-broken` deletes what lost rows" in deep.out
    code, told = checked(kinodex, library, "--deep", "--discard-broken")
    assert (code, told["problems"]) == (0, [])
    assert (told["removed"]["broken"], told["removed"]["damaged"]) == (["aaaa"], ["cccc"])
    for stage, model in STAGE_MODELS.items():
        assert [row.video_id for row in library.additions.pending(stage, model)] == ["bbbb"], stage
    assert library.video_ids() == {"bbbb"} and audit(library).problems == ()
    assert tables.count("additions", equal("video_id", "aaaa")) == tables.count("notes") == 0


DIE = """
import os, sys
from kinodex.index.library import Library
library = Library.open(sys.argv[1])
with library.lease("ingest", "a run"), library.lease("add captions", "another run"):
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_what_a_run_at_work_may_be_writing_stays(kinodex: Kinodex, library: Library, tables: Tables) -> None:
    write(library, made("half", 7, seed=8), complete=False)
    add(library, "captions", "cccc")
    add(library, "detections", "cccc")
    with library.lease("ingest", "a run"), library.lease("add captions", "another run"):
        code, told = checked(kinodex, library, "--check")
        assert told["problems"] == ["video cccc has detections by m without its addition"]
        assert [each["lease"] for each in told["health"]["at_work"]] == ["add captions", "ingest"]
        code, told = checked(kinodex, library)
        assert (code, told["problems"]) == (0, [])
        assert "where ingest is at work already: a run" in told["notes"][0]
        assert "where add captions is at work already: another run" in told["notes"][1]
        assert tables.count("frames", equal("video_id", "half")) == 7
        assert tables.count("detections", equal("video_id", "cccc")) == 0
        with library.lease("maintain", "another"):
            bad(kinodex, "maintain", library.uri, code=4, says="where maintain is at work already: another")
            assert "at work: another on" in kinodex("maintain", library.uri, "--check").out
    assert subprocess.run([sys.executable, "-c", DIE, library.uri], check=False).returncode == -9
    dead = kinodex("maintain", library.uri, "--check")
    assert dead.code == 3
    assert "ended without reporting it: another run" in dead.out
    assert checked(kinodex, library)[0] == 0
    assert audit(library).problems == ()


ROUNDS = 2


def _ingest(uri: str, maintained: Semaphore) -> None:
    """Write as an ingest does; no round of writing begins before another round of maintenance has ended."""
    library = Library.open(uri)
    with library.lease("ingest", "a run") as lease:
        for number in range(ROUNDS):
            maintained.acquire()
            videos = [made(f"r{number}v{v}", FRAMES, seed=v, lines=((0.0, 1.0, "hello"),)) for v in range(3)]
            for video in videos:
                write(library, video, complete=False)
                time.sleep(0.02)
            lease.check()
            assert library.writer.complete([video.video_row() for video in videos]) == ()


def _caption_and_read(uri: str, ingested: Event) -> None:
    library = Library.open(uri)
    query = unit_vectors(1, 99)[0].astype(np.float32)
    is_last = False
    with library.lease("add captions", "another run"):
        while not is_last:
            is_last = ingested.is_set()
            pending = [row.video_id for row in library.additions.pending("captions", "m")]
            if pending:
                add(library, "captions", *pending)
                time.sleep(0.05)
                assert library.additions.complete("captions", "m", dict.fromkeys(pending, 2), {}) == ()
            for row in library.videos()[-2:]:
                assert library.vectors(row.video_id).frame_no.tolist() == list(range(FRAMES))
                assert library.frames(row.video_id, [4])[0].jpeg == f"jpeg {row.video_id} 4".encode()
                assert len(library.captions(row.video_id)) in (0, 2)
            assert len(library.search.frames(query, k=3)) == 3


@pytest.mark.slow
def test_beside_an_ingest_a_stage_and_a_reader(library: Library) -> None:
    context = get_context("spawn")
    ingested = context.Event()
    maintained = context.Semaphore(0)
    ingest = context.Process(target=_ingest, args=(library.uri, maintained))
    stage = context.Process(target=_caption_and_read, args=(library.uri, ingested))
    ingest.start()
    stage.start()
    rounds = 0
    while ingest.is_alive():
        done = maintain(library, keep_s=5.0, purge=rounds % 2 == 1)
        assert done.after.problems == ()
        assert (done.removed.broken, done.removed.added.broken) == ((), ())
        rounds += 1
        maintained.release()
    ingested.set()
    stage.join()
    assert (ingest.exitcode, stage.exitcode) == (0, 0)
    assert rounds >= ROUNDS
    assert audit(library).problems == ()
    assert len(library.videos()) == len(VIDEOS) + 3 * ROUNDS
    assert library.additions.pending("captions", "m") == []


LOWLY = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)  # else permissions mean nothing to root
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
LOOK_THEN_MAINTAIN = """
import sys
from kinodex.cli.main import main
command = ["kinodex", "maintain", sys.argv[1]]
for sys.argv in [*command, "--check"], command:
    try:
        main()
    except SystemExit as done:
        print("exit code", done.code)
"""


@pytest.mark.slow
def test_what_may_only_be_read(library: Library) -> None:
    place = Path(library.uri)
    everything = [place, *place.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    command = [sys.executable, "-c", LOWLY, LOOK_THEN_MAINTAIN, str(place)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    for path in everything:
        path.chmod(0o755)
    assert "every row belongs to a complete video" in ran.stdout
    assert [line for line in ran.stdout.splitlines() if "exit code" in line] == ["exit code 0", "exit code 4"], ran
    assert ran.stderr.startswith(f"error: got {place}, which may only be read here")
