"""`kinodex import` as a user has it: failures until they are corrected, and what is refused."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.jobs.add.text_files import VideoText, read_captions
from tests.support.command import bad, json_of
from tests.support.libraries.text_files import written


def test_bad_videos_are_failures_until_they_are_put_right(kinodex, tmp_path):
    uri = tmp_path / "library"
    common = ("import", "captions", tmp_path / "caps", uri, "--model", "m", "--space", "builtin")
    written(tmp_path / "caps" / "a_cap.json", {"0": "fine"})
    written(tmp_path / "caps" / "b_cap.json", "{")
    written(tmp_path / "caps" / "c_cap.json", {"0": "fine", "1": None})
    written(tmp_path / "caps" / "d_cap.json", {"0": " "})
    ran = kinodex(*common)
    assert ran.code == 3
    assert "failed b_cap.json: b_cap.json: is not JSON" in ran.out
    assert "in part c: c_cap.json: 1 left out: c at 1 s: got None" in ran.out
    assert "added 2 captions to 2 videos" in ran.out
    library = Library.open(str(uri))
    failures = [(row.uri, row.stage, row.error_class) for row in library.ingest_log.failures()]
    assert failures == [
        (f"{tmp_path}/caps#b_cap.json", "captions", "UnreadableText"),
        ("imported:c", "captions", "Incomplete"),
        ("imported:d", "captions", "EmptyText"),
    ]
    for name in "bcd":
        written(tmp_path / "caps" / f"{name}_cap.json", {"0": "fine now"})
    assert json_of(kinodex, *common, "--replace")["added"] == 4
    assert library.ingest_log.failures() == []


def test_what_cannot_be_imported_makes_no_library(kinodex, tmp_path):
    source, uri = written(tmp_path / "x.json", ["neither"]), tmp_path / "library"
    common = (source, uri, "--space", "builtin")
    bad(kinodex, "import", "captions", *common, "--model", "m", code=2, says="got JSON of another form than captions")
    bad(kinodex, "import", "transcript", *common, code=2, says="got JSON of another form than a transcript")
    good = (written(tmp_path / "y.jsonl", "{}"), uri, "--space", "builtin")
    bad(kinodex, "import", "captions", *good, "--model", " ", code=2, says="got an empty --model")
    for option in ("--seconds", "--duration"):
        bad(kinodex, "import", "captions", *good, "--model", "m", option, "inf", code=2, says="without an end")
    assert not uri.exists()
    assert kinodex("import", "captions", *common).code == 2  # nobody says who wrote them


def test_the_real_captions_of_egoschema_and_nextqa(benchmarks):
    ego = list(read_captions(benchmarks / "egoschema" / "lavila_subset.json", 1.0))
    nextqa = list(read_captions(benchmarks / "nextqa" / "nextqa_allcaps_1fps.zip", 1.0))
    for read, videos, lines in ((ego, 500, 90_000), (nextqa, 570, 24_089)):
        good = [each for each in read if isinstance(each, VideoText)]
        assert (len(read), len(good), sum(len(each.lines) for each in good)) == (videos, videos, lines)
        assert not any(each.problem for each in good)
    assert {each.name for each in nextqa} >= {"4010069381", "4882821564"}
