"""MomentSeeker: moments in long films, by words, by a picture or by a clip (Yuan et al. 2025, arXiv 2502.12558).

Files of the first release name the pieces of the film, `.../VIDEO/0.00_3.00.mp4`, in `candidate_video_list`, and
those that answer in `gt_indices`. Rows have no ids: a search is known by its file and row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from kinodex.jobs.eval.items import BadRow, SearchItem
from kinodex.jobs.eval.readers.fields import Name
from kinodex.jobs.eval.row_files import json_rows
from kinodex.jobs.eval.rows import AddNote, Raw, Row, check_range, is_there

_PIECE = re.compile(r"(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)")


class MomentSeekerRow(Row):
    """A search by words or by a picture beside the file; those by a clip are left out and listed."""

    id: str
    folder: str
    qry_text: str = ""
    qry_img_path: str = ""
    qry_video_path: str = ""
    src_video_path: Name
    task: str | None = None
    answering_time_interval: Annotated[tuple[tuple[float, float], ...], Field(min_length=1)]

    def item(self, note: AddNote) -> SearchItem:
        if self.qry_video_path:
            raise BadRow("qry_video_path: a search by a clip is left out; kinodex searches by words and by a picture")
        image = Path(self.folder) / self.qry_img_path if self.qry_img_path else None
        if image is not None and not is_there(image):
            raise BadRow(f"qry_img_path: there is no file {image}; unpack the pictures beside {self.folder}")
        video = PurePosixPath(self.src_video_path).name
        if not video:
            raise BadRow(f"src_video_path: got {self.src_video_path!r}, which names no file")
        moments = tuple(
            (video, *check_range("answering_time_interval", *each)) for each in self.answering_time_interval
        )
        text = self.qry_text.strip()
        return SearchItem(self.id, "momentseeker", text, video, moments, image=image, category=self.task)


def momentseeker_rows(path: Path) -> Iterator[Raw]:
    """Read rows of both releases."""
    for number, (where, raw) in enumerate(json_rows(path), start=1):
        if not isinstance(raw, dict):
            yield where, raw
            continue
        try:
            yield where, {**raw, **_of_pieces(raw), "id": f"{path.stem}-{number}", "folder": str(path.parent)}
        except (KeyError, IndexError, TypeError, AttributeError):
            yield where, BadRow("gt_indices: they count the pieces in candidate_video_list, each VIDEO/START_END.mp4")


def _of_pieces(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the film and the moments of a row of the first release; nothing for one of the second."""
    if "answering_time_interval" in raw or "candidate_video_list" not in raw:
        return {}
    if any(index < 0 for index in raw["gt_indices"]):  # Python would count from the end
        raise IndexError
    paths = [PurePosixPath(raw["candidate_video_list"][index]["output_path"]) for index in raw["gt_indices"]]
    moments = [match.groups() for match in map(_PIECE.fullmatch, (path.stem for path in paths)) if match]
    if len(moments) < len(paths):
        raise IndexError
    return {"src_video_path": paths[0].parent.name, "answering_time_interval": moments}
