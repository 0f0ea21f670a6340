"""Picture of the rooms and their folders, docs/pictures/architecture.svg: `python -m docs.architecture_picture`.

It prints the picture, in the colours of the reader's theme, light or dark. tests/docs/test_architecture.py holds it to
the folders that there are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WIDTH, MARGIN, GAP, CELL_HEIGHT = 1120, 20, 8, 42
HEADER, CELL_STEP, LINE = 48, CELL_HEIGHT + 6, 17
ROOM_WIDTH = 336
LETTER_PX = 5.9
"""Width of a letter of the names of files, at most."""
FOLDERS = {
    "kinodex": {
        "cli": "the command line",
        "web": "pages, HTTP, chat",
        "mcp": "tools of an assistant",
        "server": "guards and responses",
        "search": "words, pictures",
        "doctor": "checks of a machine",
        "demo": "films of photographs",
    },
    "jobs": {
        "ingest": "corpus to library",
        "add": "captions, speech, text",
        "eval": "run, score, report",
        "export": "clips, texts, data sets",
        "train": "GRPO for one agent",
        "collection": "a question to all films",
        "grounding": "when something happens",
        "verification": "a model looks at moments",
        "duplicates": "videos that show the same",
        "live": "a source that grows",
        "addresses": "where the files are by now",
        "metadata": "columns of one's own",
        "towers": "models that embed pictures",
        "text_import": "captions made elsewhere",
    },
    "pipeline": {
        "decoding": "file to frames",
        "media": "clips and streams",
        "scenes": "above the shots",
        "subtitles": "files and tracks",
        "live": "sources that grow",
        "models": "captions, speech, text",
    },
    "index": {
        "annotations": "speech, notes, chapters",
        "store": "tables, filters, leases",
        "videos": "rows of a video",
        "spaces": "pictures, words, lines",
        "search": "vectors, words, both",
        "datasets": "torch, Arrow, Ray",
    },
    "agent": {
        "variants": "a paper, a folder",
        "requests": "what models are asked",
        "protocol": "requests and replies",
        "prompts": "requests as text",
        "replies": "schemas, values",
        "models": "behind endpoints",
        "similarity": "answers from vectors",
        "local": "transformers here",
        "limits": "budget and bill",
        "videos": "what agents see",
        "search": "a tree of segments",
        "traces": "a run as events",
        "tools": "captions, detection",
    },
}
"""The folders of each room, with a few words each; files beside them are listed as they are."""


class Room(NamedTuple):
    """A room: its name, what it is for, and two lines at its foot."""

    name: str
    purpose: str
    columns: int = 2
    width: int = ROOM_WIDTH
    foot: str = ""
    gives: str = ""

    @property
    def files(self) -> list[str]:
        """Names of the files beside its folders, in lines that fit."""
        names = sorted(path.stem for path in (ROOT / self.name).glob("*.py") if path.stem != "__init__")
        return textwrap.wrap(", ".join(names), int((self.width - 28) / LETTER_PX))


FRONT = Room("kinodex", "the way in: import kinodex; command line, web and MCP on top of it", 5, WIDTH - 2 * MARGIN)
JOBS = Room("jobs", "long runs over a library, here or on Ray; they print and serve nothing", 5, WIDTH - 2 * MARGIN)
ROOMS = (
    Room("pipeline", "one video in, rows out", foot="knows no library, no cluster, no question", gives="videos"),
    Room("index", "a library and its search", foot="knows no video file, no chat model", gives="a folder or bucket"),
    Room("agent", "one question", foot="never opens a video", gives="an answer with evidence"),
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
    jobs_top = MARGIN + _height(FRONT) + 28
    rooms_top = jobs_top + _height(JOBS) + 28
    room_height = max(map(_height, ROOMS)) + 48
    height = rooms_top + room_height + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms and folders of kinodex</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L10 5L0 10z"/></marker></defs>',
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="14"/>',
        *_room(FRONT, MARGIN, MARGIN, _height(FRONT)),
        *_room(JOBS, MARGIN, jobs_top, _height(JOBS)),
        _arrow(WIDTH // 2, jobs_top - 28, WIDTH // 2, jobs_top - 2),
    ]
    step = (WIDTH - 2 * MARGIN - ROOM_WIDTH) // 2
    for number, room in enumerate(ROOMS):
        left = MARGIN + number * step
        parts += _room(room, left, rooms_top, room_height)
        parts.append(_arrow(left + ROOM_WIDTH // 2, rooms_top - 28, left + ROOM_WIDTH // 2, rooms_top - 2))
    middle = rooms_top + room_height // 2
    parts.append(_arrow(MARGIN + 2 * step, middle, MARGIN + step + ROOM_WIDTH + 2, middle))
    return "\n".join([*parts, "</svg>", ""])


def _height(room: Room) -> int:
    rows = -(-len(FOLDERS[room.name]) // room.columns)
    return HEADER + rows * CELL_STEP + 10 + len(room.files) * LINE + 6


def _room(room: Room, left: int, top: int, height: int) -> Iterator[str]:
    yield from _box(room.name, room.purpose, left, top, room.width, height)
    cell = (room.width - 2 * 14 - (room.columns - 1) * GAP) / room.columns
    folders = FOLDERS[room.name]
    for number, (folder, words) in enumerate(folders.items()):
        x = left + 14 + number % room.columns * (cell + GAP)
        y = top + HEADER + number // room.columns * CELL_STEP
        yield f'<rect class="{room.name} cell" x="{x:g}" y="{y}" width="{cell:g}" height="{CELL_HEIGHT}" rx="6"/>'
        yield f'<text class="folder" x="{x + 9:g}" y="{y + 18}">{folder}</text>'
        yield f'<text class="words" x="{x + 9:g}" y="{y + 34}">{words}</text>'
    below = top + HEADER + -(-len(folders) // room.columns) * CELL_STEP + 14
    for number, line in enumerate(room.files):
        yield f'<text class="words" x="{left + 16}" y="{below + number * LINE}">{line}</text>'
    for words, kind, above in ((room.foot, "foot", 36), (room.gives, "gives", 14)):
        if words:
            yield f'<text class="{kind}" x="{left + room.width // 2}" y="{top + height - above}">{words}</text>'


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
