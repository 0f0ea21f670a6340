"""Facts of real files, by which the way to play them is chosen."""

from __future__ import annotations

import pytest

from kinodex.pipeline.media.play import playable
from kinodex.pipeline.media.source import open_source, read_facts

FILES = {
    "awkward/mediabunny__rotate-buck-bunny.mp4": ("h264", -90, "aac", "file"),
    "awkward/mediabunny__hevc.ts": ("hevc", 0, "aac", "transcoded"),
    "awkward/mediabunny__test-mkv-srt.mkv": ("h264", 0, "aac", "remuxed"),
    "awkward/torchcodec__h264_10bits.mp4": ("h264", 0, None, "transcoded"),
    "awkward/pyscenedetect__delayed_start.mp4": ("mpeg4", 0, None, "transcoded"),
    "clips/simpl__tears_of_steel_av1.webm": ("av1", 0, None, "file"),
    "clips/torchcodec__nasa_13013.mp4": ("h264", 0, "aac", "remuxed"),
    "clips/moviepy__clip1024.flv": ("vp6f", 0, None, "transcoded"),
}


@pytest.mark.needs_media
@pytest.mark.parametrize("name", FILES)
def test_facts_of_a_file(media, name):
    with open_source(str(media / name)) as container:
        facts = read_facts(container, name)
    assert (facts.codec, facts.rotation_deg, facts.sound, playable(facts).way) == FILES[name]
