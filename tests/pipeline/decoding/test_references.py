"""Every file decodes to its reference (`tests/data/decoded.txt`), by every decoder and by ffmpeg's own command.

`python -m tests.support.decoded` says what differs with another FFmpeg, and `--write` writes the references again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.errors import PipelineError
from tests.support.decoded import (
    FAR,
    Decoded,
    Sample,
    decoded,
    differences,
    files,
    grid_of,
    read_references,
    sample_differences,
    samples_of,
)
from tests.support.ffmpeg import ffmpeg_shows, needs_ffmpeg

FAR_BY_FFMPEG = {"awkward/torchcodec__h264_10bits.mp4": 12}
"""FFmpeg 5.1 sets the chroma of this hard-edged test pattern half a pixel beside where H.264 has it."""
NOT_BY_FFMPEG = {"awkward/mediabunny__whatdoesitdo.mp4", "awkward/mediabunny__hevc-aac.avi"}
"""FFmpeg 5.1 decodes nothing of the first; of the second its fps filter trips over the missing times at the end."""
FEW_SAMPLES, FEW_BYTES = 12, 1_000_000
"""Of a file that ffmpeg's command is held to: longer ones show no more of it, and take a minute."""
FAR_BY_OTHERS = 12
"""What other decoders make RGB by themselves, with other chroma and an older FFmpeg."""
# Where each gives way to PyAV, and why.
FALLS_BACK = {
    "decord": {
        "clipvideoencode__vid2.mp4": "179 frames where the packets hold 134",
        "decord__corrupted.mp4": "decord stops",
        "mediabunny__annex-b.mp4": "damaged",
        "mediabunny__av1-aac.avi": "opens nothing",
        "mediabunny__edit-list-discard.mp4": "50 frames where the packets hold 49",
        "mediabunny__hevc-aac.avi": "without presentation times",
        "mediabunny__hevc.ts": "transport stream",
        "mediabunny__no-initial-keyframe.ts": "transport stream",
        "mediabunny__whatdoesitdo.mp4": "open groups",
        "moviepy__no_duration.webm": "opens nothing",
        "simpl__tears_of_steel_av1.webm": "opens nothing",
        "simpl__track_audiosprites_video.webm": "double",
        "torchcodec__h265_video.mp4": "open groups",
    },
    "torchcodec": {
        "clipvideoencode__vid2.mp4": "other times",
        "decord__corrupted.mp4": "torchcodec stops",
        "mediabunny__annex-b.mp4": "damaged",
        "mediabunny__hevc-aac.avi": "without presentation times",
        "mediabunny__hevc.ts": "other times",
        "mediabunny__no-initial-keyframe.ts": "does not begin",
        "mediabunny__whatdoesitdo.mp4": "0 frames where the packets hold 2",
        "simpl__track_audiosprites_video.webm": "double",
    },
}


@cache
def references() -> dict[str, Decoded]:
    return read_references()


@pytest.mark.slow
def test_every_file_decodes_to_its_reference(media: Path, made: Callable[[str], Path], tmp_path: Path) -> None:
    """Films that the tests make, too: with any encoder they show the same."""
    wrong, known = [], references()
    for name, content, place in files(media, tmp_path, made):
        found = decoded(place(), name, content)
        wrong += [f"{name}: {line}" for line in differences(known[name], found)]
        if found.error:
            path = media / name
            with pytest.raises(PipelineError) as caught:
                probe(path)
            assert path.name in str(caught.value) and "\n" not in str(caught.value) and caught.value.stage == "open"
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@needs_ffmpeg
def test_the_command_of_ffmpeg_shows_the_references(media: Path) -> None:
    """Those of files with something awkward in each; plain clips have their codecs, and nothing else to disagree on."""
    wrong = []
    for name, wanted in references().items():
        path = media / name
        if not 0 < len(wanted.samples) <= FEW_SAMPLES or not path.is_file() or name in NOT_BY_FFMPEG:
            continue
        if path.parent.name != "awkward" or path.stat().st_size > FEW_BYTES:
            continue
        metadata = probe(path)
        scale = 448 / min(metadata.width_px, metadata.height_px)
        size = (round(metadata.width_px * scale), round(metadata.height_px * scale))
        most = wanted.samples[-1].number + 1
        shown, printed = ffmpeg_shows(path, metadata.stream_index, wanted.fps, *size, most)
        last, found = wanted.samples[-1], []
        kept = [
            each for each in wanted.samples if each is not last or each.number < len(shown)
        ]  # its filter ends early
        for each in kept:
            instant = printed[0] + each.number / wanted.fps + 1e-6
            time_s = max(time for time in printed if time <= instant)
            found.append(Sample(each.number, round(time_s, 6), grid_of(shown[each.number])))
        lines = sample_differences(kept, found, FAR_BY_FFMPEG.get(name, FAR))
        wrong += [f"{name}: {line}" for line in lines]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_other_decoders_show_the_references_or_give_way(media: Path, decoder: str) -> None:
    """Wrong frames never come out; `FALLS_BACK` says where each gives way to PyAV, and why."""
    wrong, reasons = [], {}
    for name, wanted in references().items():
        path = media / name
        if not wanted.samples or not path.is_file():
            continue
        with open_video(path, decoder=decoder) as video:
            found = replace(wanted, samples=samples_of(video, wanted.fps), end_s=video.end_s)
            assert video.decoder == ("pyav" if video.fell_back else decoder)
            if video.fell_back:
                reasons[path.name] = video.fell_back
        wrong += [f"{name}: {line}" for line in differences(wanted, found, FAR if video.fell_back else FAR_BY_OTHERS)]
    assert not wrong, "\n".join(wrong)
    there = {each.name for each in media.glob("*/*")}
    expected = {name: why for name, why in FALLS_BACK[decoder].items() if name in there}
    assert set(reasons) == set(expected)
    assert all(reasons[name].startswith(f"{decoder}: ") and why in reasons[name] for name, why in expected.items())
