"""Picture of the rooms and their folders, docs/pictures/architecture.svg: `python -m docs.architecture_picture`.

It prints the picture, in the colours of the reader's theme, light or dark. tests/docs/test_architecture.py holds it to
the folders that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

WIDTH, MARGIN, GAP, CELL_HEIGHT = 1120, 20, 8, 42
HEADER, CELL_STEP = 48, CELL_HEIGHT + 6
ROOM_WIDTH = 336

FRONT_DOOR = "the front door: import kinodex; other programs depend on these names and on no others"
JOBS = {
    "ingest": "corpus to library",
    "text_import": "captions made elsewhere",
    "annotate": "text, sentences, summaries",
    "duplicates": "the same film twice",
    "export": "clips, subtitles, datasets",
    "ground": "ranges of an event",
    "benchmarks": "files to questions",
    "evaluation": "run, score, report",
    "simulation": "search without videos",
    "forecast": "cost before a run",
    "serve": "look, ask, play in a browser",
    "viewer": "pages of traces and runs",
    "mcp": "tools of an assistant",
    "cli": "a file a command",
    "console": "tables, progress",
    "synthetic": "drawn films, the toy CLIP",
    "train": "GRPO for one agent",
    "bench": "kinodex bench",
    "doctor": "checks of a machine",
    "telemetry": "runs as spans",
}
PIPELINE = {
    "sources": "find and fetch",
    "decoding": "file to frames",
    "sampling": "chunk to JPEGs",
    "images": "RGB, JPEG, input",
    "media": "clips and streams",
    "models": "captions, speech, text",
    "scenes": "scenes and chapters",
}
INDEX = {
    "store": "tables, filters, leases",
    "videos": "rows of a video",
    "annotations": "text, voices, scenes",
    "embedding": "pictures, sentences",
    "search": "vectors, words, both",
    "datasets": "frames for training",
    "maintenance": "audit, sweep, purge",
}
AGENT = {
    "variants": "a folder a paper",
    "tree_search": "anchors, coverage",
    "retrieval": "hits on one scale",
    "tools": "captions, detection",
    "requests": "what models are asked",
    "prompts": "templates",
    "models": "endpoints, local, rules",
    "trace": "events, replay",
    "core": "question, budget",
}


class Room(NamedTuple):
    """A room: its name, what it is for, its folders with a few words each, and two lines at its foot."""

    name: str
    purpose: str
    folders: Mapping[str, str]
    foot: str = ""
    gives: str = ""


ROOMS = (
    Room("pipeline", "one video in, rows out", PIPELINE, "knows no LanceDB, no Ray, no question", "videos"),
    Room("index", "the library", INDEX, "knows no video file, no Ray, no chat model", "a library: a folder or bucket"),
    Room(
        "agent", "asks; never opens a video", AGENT, "knows no video file, no Ray, no LanceDB", "answer with evidence"
    ),
)
STYLE = """
text { font-family: Helvetica, Arial, sans-serif; fill: #0f172a }
.room { font-size: 20px; font-weight: 700 } .folder { font-size: 13px; font-weight: 600 }
.purpose { font-size: 13px; fill: #475569 } .words { font-size: 11px; fill: #5b6779 }
.foot { font-size: 12px; fill: #475569; text-anchor: middle }
.gives { font-size: 13px; font-weight: 600; text-anchor: middle }
.page, rect.cell { fill: #ffffff } .arrow { stroke: #475569; fill: none; stroke-width: 2px }
.head { fill: #475569 } rect { stroke-width: 2px } .cell { stroke-width: 1px }
.kinodex { fill: #f1f5f9; stroke: #64748b } .jobs { fill: #fef3c7; stroke: #b45309 }
.pipeline { fill: #dbeafe; stroke: #2563eb } .index { fill: #dcfce7; stroke: #15803d }
.agent { fill: #fae8ff; stroke: #a21caf }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .purpose, .foot { fill: #b6c2cf } .words { fill: #9fb0c0 }
.page, rect.cell { fill: #0d1117 } .arrow { stroke: #9fb0c0 } .head { fill: #9fb0c0 }
.kinodex { fill: #1c2430; stroke: #8b98a8 } .jobs { fill: #33270c; stroke: #d9962b }
.pipeline { fill: #12233f; stroke: #5b9bf5 } .index { fill: #0f2c1c; stroke: #3fb968 }
.agent { fill: #2f1236; stroke: #d16be0 } }
"""


def picture() -> str:
    """Draw the rooms, as SVG."""
    jobs = Room("jobs", "the roof: the command line, Ray, servers, what joins the rooms", JOBS)
    jobs_top = MARGIN + 46 + 22
    rooms_top = jobs_top + _height(jobs, 5) + 28
    room_height = max(_height(room, 2) for room in ROOMS) + 52
    height = rooms_top + room_height + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms and folders of kinodex</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L10 5L0 10z"/></marker></defs>',
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="14"/>',
        *_box("kinodex", FRONT_DOOR, MARGIN, MARGIN, WIDTH - 2 * MARGIN, 46),
        *_room(jobs, MARGIN, jobs_top, WIDTH - 2 * MARGIN, _height(jobs, 5), 5),
        _arrow(WIDTH // 2, MARGIN + 46, WIDTH // 2, jobs_top - 2),
    ]
    step = (WIDTH - 2 * MARGIN - ROOM_WIDTH) // 2
    for number, room in enumerate(ROOMS):
        left = MARGIN + number * step
        parts += _room(room, left, rooms_top, ROOM_WIDTH, room_height, 2)
        parts.append(_arrow(left + ROOM_WIDTH // 2, rooms_top - 28, left + ROOM_WIDTH // 2, rooms_top - 2))
    middle = rooms_top + room_height // 2
    parts.append(_arrow(MARGIN + 2 * step, middle, MARGIN + step + ROOM_WIDTH + 2, middle))
    return "\n".join([*parts, "</svg>", ""])


def _height(room: Room, columns: int) -> int:
    rows = -(-len(room.folders) // columns)
    return HEADER + rows * CELL_STEP + 10


def _room(room: Room, left: int, top: int, width: int, height: int, columns: int) -> Iterator[str]:
    yield from _box(room.name, room.purpose, left, top, width, height)
    cell = (width - 2 * 14 - (columns - 1) * GAP) / columns
    for number, (folder, words) in enumerate(room.folders.items()):
        x = left + 14 + number % columns * (cell + GAP)
        y = top + HEADER + number // columns * CELL_STEP
        yield f'<rect class="{room.name} cell" x="{x:g}" y="{y}" width="{cell:g}" height="{CELL_HEIGHT}" rx="6"/>'
        yield f'<text class="folder" x="{x + 9:g}" y="{y + 18}">{folder}</text>'
        yield f'<text class="words" x="{x + 9:g}" y="{y + 34}">{words}</text>'
    for words, kind, above in ((room.foot, "foot", 36), (room.gives, "gives", 14)):
        if words:
            yield f'<text class="{kind}" x="{left + width // 2}" y="{top + height - above}">{words}</text>'


def _box(name: str, words: str, left: int, top: int, width: int, height: int) -> Iterator[str]:
    yield f'<rect class="{name}" x="{left}" y="{top}" width="{width}" height="{height}" rx="10"/>'
    yield (
        f'<text x="{left + 16}" y="{top + 30}"><tspan class="room">{name}</tspan>'
        f'<tspan class="purpose" dx="10">{words}</tspan></text>'
    )


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    return f'<path class="arrow" d="M{x} {y}L{to_x} {to_y}" marker-end="url(#head)"/>'


if __name__ == "__main__":
    print(picture(), end="")
