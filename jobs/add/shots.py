"""Shots whose cuts lie on their frames: the sources are decoded around each place where the stored vectors change."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.index.additions import append_rows
from kinodex.index.clocks import player_s, presentation_s
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.small_pictures import SmallPictures
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Shots
from kinodex.jobs.library import source_of, stored_pictures
from kinodex.pipeline.cuts import Cut, cut_windows
from kinodex.pipeline.fetch import check_unchanged
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import Chunk, IngestSettings, SamplingSettings
from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler
from kinodex.pipeline.segments import segments_between

SETTINGS = SamplingSettings(1.0, 16, 85, "pyav", ModelInput(1, 1))
"""Of the sampler, which makes no samples here."""


PICTURES_AT_ONCE = 64


class NewShot(NamedTuple):
    """A row of shots; see `kinodex.index.rows.SegmentRow`."""

    segment_no: int
    start_s: float
    end_s: float
    kind: str
    fade_start_s: float | None
    fade_end_s: float | None


@dataclass(frozen=True, slots=True)
class ShotFinder(StageWork[Shots]):
    """Shots of a library's videos; there are no settings, so that all are found in one way."""

    def rows_of(self, video: VideoRow) -> AddedRows:
        library = self.library
        stored_s, vectors = _compared(library, video)
        units, times_s = vectors.astype(np.float64), stored_s.tolist()
        distances = 1.0 - np.einsum("nd,nd->n", units[1:], units[:-1])
        windows = cut_windows(times_s, distances.tolist())
        cuts = {cut.time_s: cut for cut in _found(library, video, windows) if times_s[0] < cut.time_s < video.end_s}
        window_s = library.settings.get("window_s", IngestSettings().window_s)
        rows = []
        for number, each in enumerate(segments_between([*cuts], times_s, video.end_s, window_s)):
            cut = cuts.get(each.start_s, Cut(each.start_s))
            rows.append(NewShot(number, each.start_s, each.end_s, each.kind, cut.fade_start_s, cut.fade_end_s))
        return AddedRows(rows, len(rows))

    def write(self, rows: Mapping[str, Any]) -> None:
        append_rows(self.library.tables, self.library.visible, "shots", rows, model=lambda _: self.model)


def _compared(library: Library, video: VideoRow) -> tuple[NDArray[np.float64], NDArray[np.float16]]:
    """Return the times of frames and their vectors, or, without a space, what an ingest compares in their place."""
    if library.fingerprint.has_vectors:
        stored = library.vectors(video.video_id)
        return stored.time_s, stored.vectors
    small = SmallPictures()
    parts = [
        small.embed(np.stack([small.prepare(np.asarray(picture)) for _, picture in batch]))
        for batch in stored_pictures(library, video, PICTURES_AT_ONCE)
    ]
    return library.frame_times(video.video_id)[1], np.concatenate(parts)


def _found(library: Library, video: VideoRow, windows_s: list[tuple[float, float]]) -> list[Cut]:
    """Return the cuts of a video within these times, as a player shows both; raises SourceError or VideoError."""
    if not windows_s:
        return []
    places = [(presentation_s(video, first_s), presentation_s(video, last_s)) for first_s, last_s in windows_s]
    with source_of(library, video) as found, closing(SandboxSampler(SandboxLimits())) as sampler:
        cuts = sampler.cuts(Chunk(found), places, SETTINGS)
        check_unchanged(found)
    ends = [(each.fade_start_s, each.fade_end_s) for each in cuts]
    shown = [tuple(None if end is None else player_s(video, end) for end in pair) for pair in ends]
    return [Cut(player_s(video, each.time_s), *pair) for each, pair in zip(cuts, shown, strict=True)]
