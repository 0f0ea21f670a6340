"""Caption and transcript files: every form, and bad ones that do not stop the others."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from dataclasses import replace

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.text_import.run import import_text
from kinodex.jobs.text_import.video_text import ReadFailure, TextLine, VideoText
from tests.support.command import bad
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.libraries.text_files import captions, names, spans, transcripts, written


def test_both_schemas_of_longvideobench(tmp_path):
    clocks = [
        {"start": "00:00:01.500", "end": "00:00:03.000", "line": "one"},
        {"start": "01:00:04.250", "end": "01:00:05.000", "line": "two"},
    ]
    stamps = [
        {"timestamp": [4.5, None], "text": "second"},
        {"timestamp": [1.5, None], "text": "first"},
        {"timestamp": [7.0, 8.0], "text": ""},
        {"timestamp": "soon", "text": "never"},
    ]
    written(tmp_path / "86CxyhFV9MI_en.json", clocks)
    written(tmp_path / "x.json", stamps)
    first, second = transcripts(tmp_path)
    assert names([first, second]) == ["86CxyhFV9MI", "x"]
    assert spans(first) == [(1.5, 3.0, "one"), (3604.25, 3605.0, "two")]
    assert spans(second) == [(1.5, 4.5, "first"), (4.5, 9.5, "second")]
    assert isinstance(second, VideoText)
    assert second.problem is not None
    assert second.problem.startswith("x.json: 2 left out: row 3: got {'timestamp': [7.0, 8.0], 'text': ''}")


def test_a_video_of_longvideobench_that_is_cut_from_a_longer_one(tmp_path):
    lines = [{"timestamp": [second, second + 2.0], "text": f"at {second}"} for second in (0.0, 99.0, 105.0, 112.0)]
    source = written(tmp_path / "subtitles" / "file_en.json", lines).parent
    annotation = {"subtitle_path": "file_en.json", "video_id": "v", "starting_timestamp_for_subtitles": 100}
    cuts = written(tmp_path / "lvb_val.json", [annotation | {"duration": 12.5, "question": "q", "level": "L1"}])
    (read,) = transcripts(source, cuts=cuts)
    assert read == VideoText(
        "v", (TextLine(0.0, 1.0, "at 99.0"), TextLine(5.0, 7.0, "at 105.0"), TextLine(12.0, 12.5, "at 112.0")), 12.5
    )
    with pytest.raises(UsageError, match=r"got --cuts .*file_en.json: .* give LongVideoBench's lvb_val.json"):
        transcripts(source, cuts=source / "file_en.json")


def test_each_video_that_is_cut_from_one_has_its_lines_and_a_file_of_no_cut_is_a_failure(tmp_path):
    lines = [{"timestamp": [second, second + 2.0], "text": f"at {second}"} for second in (10.0, 110.0)]
    source = written(tmp_path / "subtitles" / "file_en.json", lines).parent
    written(source / "other_en.json", lines)
    rows = [("v1", 0), ("v1", 0), ("v2", 100)]
    annotation = {"subtitle_path": "file_en.json", "duration": 50}
    annotations = [annotation | {"video_id": name, "starting_timestamp_for_subtitles": at} for name, at in rows]
    first, second, unknown = transcripts(source, cuts=written(tmp_path / "lvb_val.json", annotations))
    assert (names([first, second]), spans(first), spans(second)) == (
        ["v1", "v2"],
        [(10.0, 12.0, "at 10.0")],
        [(10.0, 12.0, "at 110.0")],
    )
    assert isinstance(unknown, ReadFailure) and unknown.message.startswith("other_en.json: --cuts does not say")


def test_captions_that_are_none_are_left_out_and_told(tmp_path):
    source = written(tmp_path / "lavila.json", {"q-1": ["a", None, " ", "d", 5], "q-2": [], "q-3": "oops"})
    good, empty, wrong = captions(source)
    assert spans(good) == [(0.0, 1.0, "a"), (3.0, 4.0, "d")]
    assert isinstance(good, VideoText)
    assert good.problem == (
        "lavila.json: 3 left out: q-1 at 1 s: got None, which is no caption; q-1 at 2 s: got ' ', which is no caption; "
        "q-1 at 4 s: got 5, which is no caption"
    )
    assert isinstance(empty, ReadFailure)
    assert (empty.name, empty.error_class) == ("q-2", "EmptyText")
    assert isinstance(wrong, ReadFailure)
    assert wrong.message == "lavila.json: got str for video q-3; give a list of captions"


def test_a_file_of_seconds_a_video_in_a_zip_and_in_a_folder(tmp_path):
    source = tmp_path / "caps.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("caps/", "")
        archive.writestr("caps/4010069381_cap.json", json.dumps({"10": "third", "0": "first", "1": "second"}))
        archive.writestr("caps/2435100235_cap.json", json.dumps({"0": "a man"}))
        archive.writestr("__MACOSX/caps/._2435100235_cap.json", "binary")
        archive.writestr("caps/readme.txt", "not mine")
    zipped = captions(source)
    assert names(zipped) == ["2435100235", "4010069381"]
    assert spans(zipped[1]) == [(0.0, 1.0, "first"), (1.0, 2.0, "second"), (10.0, 11.0, "third")]
    with zipfile.ZipFile(source) as archive:
        archive.extractall(tmp_path / "folder")
    assert captions(tmp_path / "folder") == zipped


def test_two_lists_of_one_video_are_refused(tmp_path):
    (bad,) = captions(written(tmp_path / "all.json", '{"v": ["one"], "w": ["x"], "v": ["two"]}'))
    assert isinstance(bad, ReadFailure) and "'v' stands twice in an object" in bad.message


def test_a_bad_file_does_not_stop_the_others(tmp_path):
    written(tmp_path / "a.json", {"0": "fine"})
    written(tmp_path / "b.json", '{"0": "cut o')
    written(tmp_path / "c.json", ["what", "is", "this"])
    written(tmp_path / "d.json", {})
    good, *bad = captions(tmp_path)
    assert spans(good) == [(0.0, 1.0, "fine")]
    told = [each.message for each in bad if isinstance(each, ReadFailure)]
    assert [each.where for each in bad if isinstance(each, ReadFailure)] == ["b.json", "c.json", "d.json"]
    assert told[0].startswith("b.json: is not JSON (Unterminated string")
    written(tmp_path / "deep" / "f.json", "[" * 200_000)
    (deep,) = captions(tmp_path / "deep")
    assert isinstance(deep, ReadFailure)
    assert deep.message.startswith("f.json: is not JSON (maximum recursion depth")
    assert all("got JSON of another form than captions; forms: " in each for each in told[1:])
    written(tmp_path / "e.srt", "nothing like it")
    *_, empty = transcripts(tmp_path)
    assert isinstance(empty, ReadFailure)
    assert empty.where == "e.srt"


def test_a_source_without_text_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"which does not exist; give a file, a folder or a zip"):
        captions(tmp_path / "absent")
    with pytest.raises(UsageError, match=r"which holds no text; give .json, .jsonl files, or a zip of them"):
        captions(tmp_path)
    with pytest.raises(UsageError, match=r"which holds no text"):
        transcripts(written(tmp_path / "film.mp4", "no"))


def test_our_own_rows_in_any_order(tmp_path):
    rows = [
        {"video": "b", "start_s": 4, "end_s": 6.5, "text": "later"},
        {"video": 17, "start_s": 0, "end_s": 1, "text": "other", "confidence": 0.25},
        {"video": "b", "start_s": 0, "end_s": 4, "text": "sooner", "speaker": "Ann", "language": "en"},
    ]
    source = written(tmp_path / "own.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    first, second = captions(source)
    assert first == VideoText("b", (TextLine(0, 4, "sooner", None, "Ann", "en"), TextLine(4, 6.5, "later")))
    assert second == VideoText("17", (TextLine(0, 1, "other", 0.25),))
    assert transcripts(source) == [first, second]


def test_bad_rows_are_told_by_number_and_the_others_read(tmp_path):
    rows = [
        '{"video": "a", "start_s": 0, "end_s": 1, "text": "fine"}',
        '{"video": "a", "start_s": 3, "end_s": 2, "text": "backwards"}',
        '{"video": "a", "start_s": -1, "end_s": 2, "text": "too soon"}',
        '{"video": "a", "end_s": 2, "text": "no start"}',
        "no JSON",
    ]
    good, bad = captions(written(tmp_path / "own.jsonl", "\n".join(rows)))
    assert spans(good) == [(0.0, 1.0, "fine")]
    assert isinstance(bad, ReadFailure)
    assert bad.name is None
    assert "own.jsonl: 4 left out: row 2: Value error, ends at 2.0 s, not after its start at 3.0 s; " in bad.message
    assert "row 3: start_s: Input should be greater than or equal to 0; row 4: start_s: Field required" in bad.message
    assert "and 1 more" in bad.message


def test_clips_and_episodes_of_longtvqa_become_the_same_episode_on_one_time_line(tmp_path):
    said = "Sheldon : So . <eos> ( UNKNAME : ) No . <eos> ( Penny : ) Oh : my . <eos> sighs <eos>"
    clips = {"s05e06_seg02_clip_15": said, "s05e06_seg02_clip_9": " ", "s05e07_seg01_clip_00": "Hm ."}
    episodes = {"s05e06": f"<seg02_clip_9> <seg02_clip_15> {said}", "s05e07": "<seg01_clip_00> Hm ."}
    first, second = transcripts(written(tmp_path / "clips.json", clips), clip_s=40.0)
    assert isinstance(second, VideoText)
    assert transcripts(written(tmp_path / "episodes.jsonl", episodes), clip_s=40.0) == [first, second]
    lines = (
        TextLine(0.0, 10.0, "So .", speaker="Sheldon"),
        TextLine(10.0, 20.0, "No ."),
        TextLine(20.0, 30.0, "Oh : my .", speaker="Penny"),
        TextLine(30.0, 40.0, "sighs"),
    )
    there = (VideoText("s05e06_seg02_clip_9", (), 40.0, 40.0), VideoText("s05e06_seg02_clip_15", lines, 40.0, 40.0))
    later = tuple(replace(line, start_s=line.start_s + 40.0, end_s=line.end_s + 40.0) for line in lines)
    assert first == VideoText("s05e06", later, duration_s=80.0, window_s=40.0, clips=there)
    assert (second.name, [clip.name for clip in second.clips]) == ("s05e07", ["s05e07_seg01_clip_00"])


def test_an_episode_is_one_video_with_its_clips_as_segments_or_its_clips_where_those_are_the_videos(tmp_path):
    source = written(tmp_path / "clips.json", {f"s05e06_seg02_clip_{n:02d}": f"Amy : line {n} <eos>" for n in (2, 3)})
    library = make_library(tmp_path / "library", {"film": film(1, 20)})
    read = transcripts(source, clip_s=30.0)
    assert import_text(library, "speech", "subtitles", "here", read, {}).made == 1
    (episode,) = [row for row in library.videos() if row.title == "s05e06"]
    parts = [(row.start_s, row.end_s, row.clip_name) for row in library.segments(episode.video_id)]
    assert parts == [(0.0, 30.0, "s05e06_seg02_clip_02"), (30.0, 60.0, "s05e06_seg02_clip_03")]
    clips = make_library(tmp_path / "clips", {"s05e06_seg02_clip_02": film(1, 20), "s05e06_seg02_clip_03": film(2, 20)})
    assert import_text(clips, "speech", "subtitles", "here", read, {}).made == 0
    said = [note.text for row in clips.videos() for note in environment_of(clips).lines(row.video_id, ["speech"])]
    assert said == ["Amy: line 2", "Amy: line 3"]


def test_subtitles_are_named_after_their_videos(tmp_path):
    srt = "1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i>\nthere\n"
    written(tmp_path / "__a film.srt", srt)
    written(tmp_path / "deep" / "other.en.vtt", "WEBVTT\n\n00:03.000 --> 00:04.000\n<v Mary>Yes")
    written(tmp_path / "notes.txt", "not mine")
    first, second = transcripts(tmp_path)
    assert first == VideoText("__a film", (TextLine(1.0, 2.5, "Hello there"),))
    assert second == VideoText("other", (TextLine(3.0, 4.0, "Yes", None, "Mary", "en"),), whole_name="other.en")


@pytest.mark.parametrize("members", [1, 40])
def test_an_archive_that_unpacks_to_more_than_texts_do_is_refused_unread(members, kinodex, library, tmp_path):
    bomb, folder = tmp_path / "bomb.zip", tmp_path / "few.zip"
    text = b'{"film": ["' + b"a" * (400_000_000 // members) + b'"]}'
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(members):
            archive.writestr(f"film-{number}.json", text)
    del text
    tracemalloc.start()
    try:
        bad(kinodex, "import", "captions", bomb, library, "--model", "x", code=2, says="unpack it yourself")
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    with zipfile.ZipFile(folder, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("film.json", json.dumps({"film": ["the same words"] * 100_000}))
    (read,) = captions(folder)
    assert isinstance(read, VideoText) and len(read.lines) == 100_000


def test_names_in_an_archive_are_of_any_system_and_stand_once(tmp_path):
    source = tmp_path / "texts.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("of windows\\film.json", json.dumps({"0": "one"}))
        archive.writestr("../other.json", json.dumps({"0": "two"}))
    assert {read.name for read in captions(source) if isinstance(read, VideoText)} == {"other", "film"}
    with zipfile.ZipFile(source, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("../other.json", json.dumps({"0": "three"}))
    with pytest.raises(UsageError, match=r"holds two files called \.\./other\.json"):
        captions(source)
    source.write_bytes(source.read_bytes()[:-30])
    with pytest.raises(UsageError, match="is no whole zip archive"):
        captions(source)
