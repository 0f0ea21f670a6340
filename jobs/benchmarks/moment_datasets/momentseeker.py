"""MomentSeeker: moments in long films, by words, by a picture or by a clip (Yuan et al. 2025, arXiv 2502.12558).

Published as JSON arrays, `t2v.json` among them: `qry_text`, `qry_img_path`, `qry_video_path`, `src_video_path`, `task`,
`answering_time_interval`. Files of the first release name instead the pieces of the film, `.../VIDEO/0.00_3.00.mp4`, in
`candidate_video_list`, and those that answer in `gt_indices`. Rows have no ids: a search is known by its file and row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, Field

from jobs.benchmarks.moments import MomentSample, ParsedMoments, check_range, is_there, parse_moments
from jobs.benchmarks.samples import AS_PUBLISHED, AddNote, BadRow, Raw, json_rows

_PIECE = re.compile(r"(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)")


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    qry_text: str = ""
    qry_img_path: str = ""
    qry_video_path: str = ""
    src_video_path: Annotated[str, Field(min_length=1)]
    task: str | None = None
    answering_time_interval: Annotated[tuple[tuple[float, float], ...], Field(min_length=1)]


def read(path: Path) -> ParsedMoments:
    """Read searches by words and by a picture beside the file; those by a clip are left out and listed."""
    return parse_moments(_rows(path), _Row, lambda row, note: _item(row, path.parent, note))


def _rows(path: Path) -> Iterator[Raw]:
    for number, (where, raw) in enumerate(json_rows(path), start=1):
        if not isinstance(raw, dict):
            yield where, raw
            continue
        try:
            yield where, {**raw, **_of_pieces(raw), "id": f"{path.stem}-{number}"}
        except (KeyError, IndexError, TypeError, AttributeError):
            yield where, BadRow("gt_indices: they count the pieces in candidate_video_list, each VIDEO/START_END.mp4")


def _of_pieces(raw: dict[str, Any]) -> dict[str, Any]:
    """The film and the moments of a row of the first release; nothing for one of the second."""
    if "answering_time_interval" in raw or "candidate_video_list" not in raw:
        return {}
    if any(index < 0 for index in raw["gt_indices"]):  # Python would count from the end
        raise IndexError
    paths = [PurePosixPath(raw["candidate_video_list"][index]["output_path"]) for index in raw["gt_indices"]]
    moments = [match.groups() for match in map(_PIECE.fullmatch, (path.stem for path in paths)) if match]
    if len(moments) < len(paths):
        raise IndexError
    return {"src_video_path": paths[0].parent.name, "answering_time_interval": moments}


def _item(row: _Row, folder: Path, note: AddNote) -> MomentSample:
    if row.qry_video_path:
        raise BadRow("qry_video_path: a search by a clip is left out; kinodex searches by words and by a picture")
    image = folder / row.qry_img_path if row.qry_img_path else None
    if image is not None and not is_there(image):
        raise BadRow(f"qry_img_path: there is no file {image}; unpack the pictures beside {folder}")
    video = PurePosixPath(row.src_video_path).name
    if not video:
        raise BadRow(f"src_video_path: got {row.src_video_path!r}, which names no file")
    moments = tuple((video, *check_range("answering_time_interval", *each)) for each in row.answering_time_interval)
    return MomentSample(row.id, "momentseeker", row.qry_text.strip(), video, moments, image=image, category=row.task)
