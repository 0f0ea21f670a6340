"""A small library with everything that a viewer shows, traces of real runs over it, and the viewer's real server.

Frames are coloured pictures whose vectors are those of words in the drawn space, so searches work without films.
What videos, captions and models say is hostile: markup, and the end of a script element.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.trace import trace_to
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.rows import DetectionRow, FailureRow, SegmentRow, SpeechRow, VideoRow
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.load import load_text_tower
from kinodex.pipeline.sample import FrameRow
from kinodex.server.sockets import listen
from kinodex.web.app import Site, make_app
from kinodex.web.inputs import classify_inputs
from kinodex.web.text_towers import TextTowers
from kinodex.web.viewer_api import ViewerApi
from tests.support.libraries.agent_library import ScriptedModel, explorer
from tests.support.libraries.random_library import add_stage, plain_row
from tests.support.loopback import serve_in_thread
from tests.support.scenes.chapters import add_chapters
from tests.support.screen_text.lines import Line, add_screen_text
from tests.world.drawn_space import DRAWN, put_towers

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = '</script><img src=x onerror="window.hurt=1">\'&'
CHAPTERS = {"red shoes in the city": (200, 30, 30), "a yellow boat at sea": (220, 200, 40), "snow": (240, 240, 250)}
SCENE_S = 20
SECONDS = SCENE_S * len(CHAPTERS)
QUESTION = Question(f"What is in the city? {EVIL}", ("red shoes", f"a boat {EVIL}"))
SAID = f"we are at sea {EVIL}"
SEEN = "a walrus plays chess"


@dataclass(frozen=True)
class Shown:
    """The library, traces and server that a test looks at."""

    library: Library
    video_id: str
    traces: tuple[Path, Path]


def make_shown(folder: Path) -> Shown:
    """One video, and two traces of the same question: one with a tree of several rounds, one with a budget of two."""
    space = load_text_tower(DRAWN)
    library = Library.create(str(folder / "library"), {"fps": 1.0}, space.fingerprint)
    put_towers(folder / "library")
    video_id = hashlib.sha256(b"viewer").hexdigest()[:32]
    assert library.writer.complete([_add_film(library, space, video_id, f"film {EVIL}", SAID)]) == ()
    library.ingest_log.add_failures([FailureRow("bad.mp4", "probe", "Broken", EVIL, 1, datetime.now(UTC))])
    _add_words(library, video_id, space.embed_text)
    environment = Environment.of(library, library.videos(), space.embed_text)
    traces = tuple(_trace(environment, folder / f"{rounds}.jsonl", rounds) for rounds in (4, 2))
    return Shown(library, video_id, (traces[0], traces[1]))


def held_in(text: str) -> dict[str, Any]:
    """Read the data and pictures of a page of one file."""
    (found,) = re.findall(r'id="held">(.*?)</script>', text, re.DOTALL)
    held: dict[str, Any] = json.loads(found)
    return held


def hits_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Hits of all groups of a search."""
    return [hit for group in found["groups"] for hit in group["hits"]]


def picture(colour: tuple[int, int, int]) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (64, 36), colour).save(held, "JPEG")
    return held.getvalue()


def library_of_titles(folder: Path, count: int) -> Library:
    """A library of videos that have a title and nothing else."""
    library = Library.create(str(folder), {"fps": 1.0}, load_text_tower(DRAWN).fingerprint)
    rows = [_video_row(f"{at:032x}", f"film {at:04}", library.space_name) for at in range(count)]
    assert library.writer.complete(rows) == ()
    return library


def library_of_films(folder: Path, titles: Sequence[str]) -> Library:
    """A library of a film of each title: the frames of all scenes, a shot each, and the title as what is said."""
    space = load_text_tower(DRAWN)
    library = Library.create(str(folder), {"fps": 1.0}, space.fingerprint)
    rows = [_add_film(library, space, f"{number:032x}", title, title) for number, title in enumerate(titles)]
    assert library.writer.complete(rows) == ()
    return library


def _add_film(library: Library, space: TextEmbedder, video_id: str, title: str, said: str) -> VideoRow:
    """Add a film of all scenes, a frame a second and a shot each; its row, to be completed."""
    vectors = dict(zip(CHAPTERS, space.embed_text(list(CHAPTERS)), strict=True))
    frames = [
        FrameRow(at, float(at), 64, 36, picture(CHAPTERS[scene]), vectors[scene].astype("float16"))
        for at, scene in enumerate(scene for scene in CHAPTERS for _ in range(SCENE_S))
    ]
    shots = [SegmentRow(video_id, at, at * 20.0, at * 20.0 + 20, "shot") for at in range(len(CHAPTERS))]
    library.writer.add_frames({video_id: frames})
    library.writer.add_segments({video_id: shots})
    library.writer.add_speech({video_id: [SpeechRow(video_id, 20.0, 25.0, said, "sidecar")]})
    return _video_row(video_id, title, library.space_name, frames=len(frames), segments=len(shots), speech_lines=1)


def _video_row(video_id: str, title: str, space: str, **counts: int) -> VideoRow:
    return plain_row(video_id, title, uri=f"{title.split()[0]}.mp4", duration_s=float(SECONDS), space=space, **counts)


def _add_words(library: Library, video_id: str, embed) -> None:
    texts = [f"{scene} {EVIL}" for scene in CHAPTERS]
    rows = [
        SimpleNamespace(
            segment_no=at, start_s=at * 20.0, end_s=at * 20.0 + 20, text=text, confidence=0.9, vector=vector
        )
        for at, (text, vector) in enumerate(zip(texts, embed(list(CHAPTERS)), strict=True))
    ]
    add_stage(library, "captions", "captioner", {video_id: rows})
    seen = [DetectionRow(video_id, 3, 3.0, f"shoe {EVIL}", 0.9, (0.25, 0.25, 0.5, 0.75), None, "detector")]
    add_stage(library, "detections", "detector", {video_id: seen})
    add_screen_text(library, video_id, [Line(4.0, 9.0, f"HARBOUR CAFE {EVIL}"), Line(50.0, 52.0, "THE END")])
    add_chapters(library, video_id, float(SECONDS))


def hostile(request):
    """Explores as `explorer` does, and explains itself in markup."""
    said = explorer(request)
    for name, each in said.items():
        if name.startswith("Segment ") and isinstance(each, dict):
            each["explanation"] = EVIL
    return {"queries": [f"red shoes in the city {EVIL}"]} if "queries" in said else said


def _trace(environment: Environment, path: Path, rounds: int) -> Path:
    with trace_to(path) as write:
        model = ScriptedModel(hostile, Usage(100, 10, 0, 0.5))
        asyncio.run(ask(QUESTION, environment, model, agent="eea", budget=Budget(rounds=rounds), on_event=write))
    return path


def browser_path() -> str:
    """Return the path of a browser, or skip; the one without windows comes first, for it takes half the time."""
    paths = map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))
    return next(filter(None, paths), None) or pytest.skip("no chromium here")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium; while it is open, no event loop may run in this thread. Skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def served(*places: object, space: str | None = None, towers: TextTowers | None = None) -> Iterator[str]:
    """The viewer's server on loopback, in a thread; gives its address."""
    listener = listen("127.0.0.1", 0)
    api = ViewerApi(classify_inputs([str(place) for place in places]), space, towers)
    app = make_app(Site(api))
    with serve_in_thread(app, listener) as address:
        yield address
