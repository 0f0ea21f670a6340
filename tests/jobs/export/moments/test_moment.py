"""An unfinished export goes on with the same inputs alone: each kind of export, each input of it changed in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.annotations import export_coco, export_fiftyone, export_label_studio
from kinodex.jobs.export.media import CutWay, export_clips, export_frames, export_joined
from kinodex.jobs.export.moments import Moment

Export = Callable[[Library, Sequence[Moment], Path], Any]

KINDS: dict[str, tuple[str, Export, Export]] = {
    "clips": (
        "clips.csv",
        lambda library, moments, out: export_clips(library, moments, out, CutWay()),
        lambda library, moments, out: export_clips(library, moments, out, CutWay(exact=True)),
    ),
    "joined": ("clips.csv", export_joined, export_joined),
    "frames": ("frames.csv", export_frames, lambda library, moments, out: export_frames(library, moments, out, 1)),
    "coco": (
        "annotations.json",
        export_coco,
        lambda library, moments, out: export_coco(library, moments, out, min_score=0.01),
    ),
    "fiftyone": (
        "labels.json",
        lambda library, moments, out: export_fiftyone(moments, out),
        lambda library, moments, out: export_fiftyone(moments, out, {moments[0].video.video_id: [0.0, 3.0, 9.0]}),
    ),
    "label-studio": (
        "tasks.json",
        lambda library, moments, out: export_label_studio(library, moments, out, None, boxes=False),
        lambda library, moments, out: export_label_studio(library, moments, out, None, boxes=True),
    ),
}
"""For each: the file that is written last, the export, and the same with another setting."""

CHANGES: dict[str, dict[str, Any]] = {
    "labels": {"label": "dog"},
    "scores": {"score": 0.8},
    "sources": {"source": "shot"},
    "speakers": {"speaker": "B"},
    "ranges": {"end_s": 3.5},
    "videos": {},
    "settings": {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_resume_with_another_input_is_refused_and_says_which(kind: str, described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    last, export, with_other_setting = KINDS[kind]
    film = library.video("film-02")
    begun = Moment(film, film.start_s, film.end_s, "cat", 0.5, "visual", "A")
    in_the_way = tmp_path / ".unfinished" / last
    (in_the_way / "x").mkdir(parents=True)
    with pytest.raises(OSError, match=last):
        export(library, [begun], tmp_path)
    (in_the_way / "x").rmdir()
    in_the_way.rmdir()
    for what, change in CHANGES.items():
        moment = replace(begun, **change)
        if what == "videos":
            moment = replace(begun, video=replace(film, title="another"))
        if what != "settings":
            with pytest.raises(UsageError, match=rf"with another .*\b{what}\b"):
                export(library, [moment], tmp_path)
        elif with_other_setting is not export:
            with pytest.raises(UsageError, match="with another"):
                with_other_setting(library, [begun], tmp_path)
    export(library, [begun], tmp_path)
    assert (tmp_path / last).is_file()
