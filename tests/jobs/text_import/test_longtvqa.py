"""The subtitles of LongTVQA: by clip and by episode."""

from __future__ import annotations

from kinodex.jobs.add.text_files import ReadFailure, TextLine, VideoText
from tests.support.libraries.text_files import transcripts, written


def test_clips_and_episodes_of_longtvqa_become_the_same_videos(tmp_path):
    said = "Sheldon : So . <eos> ( UNKNAME : ) No . <eos> ( Penny : ) Oh : my . <eos> sighs <eos>"
    clips = written(tmp_path / "clips.json", {"s05e06_seg02_clip_15": said, "s05e06_seg02_clip_16": " "})
    episodes = {"s05e06": f"<seg02_clip_15> {said} <seg02_clip_16> "}
    first, silent = transcripts(clips, clip_s=40.0)
    assert transcripts(written(tmp_path / "episodes.jsonl", episodes), clip_s=40.0) == [first, silent]
    assert first == VideoText(
        "s05e06_seg02_clip_15",
        (
            TextLine(0.0, 10.0, "So .", speaker="Sheldon"),
            TextLine(10.0, 20.0, "No ."),
            TextLine(20.0, 30.0, "Oh : my .", speaker="Penny"),
            TextLine(30.0, 40.0, "sighs"),
        ),
        duration_s=40.0,
        window_s=40.0,
    )
    assert silent == VideoText("s05e06_seg02_clip_16", (), 40.0, 40.0)


def test_words_before_the_first_clip_are_told(tmp_path):
    source = written(tmp_path / "e.json", {"s01e01": "Previously : on <seg01_clip_00> A : b <eos>", "s01e02": 3})
    clip, wrong = transcripts(source)
    assert isinstance(clip, VideoText)
    assert clip.problem == "e.json: s01e01 has words before its first clip: Previously : on"
    assert isinstance(wrong, ReadFailure)
    assert wrong.message == "e.json: got int for s01e02; give its subtitles as text"
