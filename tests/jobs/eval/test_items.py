"""The samples that a run asks: by --only and --ids, by the videos that the library holds, and drawn at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.agent.evidence import Evidence
from kinodex.agent.protocol.question import Question
from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.folder import read_items, read_plan
from kinodex.jobs.eval.item_choice import draw_items, parse_subset, select_items
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.row_files import csv_rows
from kinodex.jobs.eval.scoring.answers import score
from kinodex.jobs.eval.video_names import complete_items, match_videos
from kinodex.jobs.text_import.run import import_text
from tests.support.command import Kinodex, bad
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.agent_library import film, make_library
from tests.support.libraries.text_files import transcripts, written
from tests.support.runs.eval_runs import FILMS, caption_library
from tests.support.runs.solved_runs import answer
from tests.world.benchmark import SKETCHES

KINDS = ("kite", "lamp")


RANDOM = ("--agent", "random", "--no-controls")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part") / "library"
    caption_library(folder)
    return folder


def questions(folder: Path, films: Sequence[str] = FILMS) -> Path:
    """Four questions about each film, of two kinds by turns."""
    rows = [
        kit.sketch_row(f"{film}-{number}", video=f"{film}.mp4", kind=KINDS[number % 2])
        for film in films
        for number in range(4)
    ]
    return kit.published(folder, SKETCHES, *rows)


def ids_of(name: str, path: Path, only: Sequence[str], ids: Path | None = None) -> list[str]:
    return [item.item_id for item in select_items(read_benchmark(name, path).items, parse_subset(only, ids))]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (["duration=long"], ["1", "2"]),
        (["duration=long", "duration=short"], ["1", "2", "4"]),
        (["duration=long", "task_type=OCR Problems"], ["2"]),
        (["task_type=OCR Problems", "duration=medium", "duration=long"], ["2", "3"]),
        ([], ["1", "2", "3", "4"]),
    ],
)
def test_values_of_a_group_are_joined_by_or_and_groups_by_and(only: list[str], found: list[str], tmp_path: Path):
    lengths = {"1": "long", "2": "long", "3": "medium", "4": "short"}
    ocr: Mapping[str, str] = {"task_type": "OCR Problems"}
    rows = [
        kit.video_mme_row(number, duration=length, **(ocr if number in "23" else {}))
        for number, length in lengths.items()
    ]
    assert ids_of("video-mme", kit.published(tmp_path, "video-mme", *rows), only) == found


@pytest.mark.slow
def test_a_run_asks_the_part_and_its_report_names_it(kinodex: Kinodex, library: Path, tmp_path: Path):
    path, out = questions(tmp_path, (*FILMS, "lost")), tmp_path / "run"
    command = ("eval", SKETCHES, library, "--annotations", path, "--out", out, "--no-page", *RANDOM)
    ran = kinodex(*command, "--only", "kind=lamp")
    assert ran.code == 0, ran
    assert "6 of 16 questions about 3 videos; part: kind = lamp" in ran.out
    assert {item.item_id for item in read_items(out)} == {f"{film}-{number}" for film in FILMS for number in (1, 3)}
    assert [(each.video, each.questions) for each in read_plan(out).missing] == [("lost.mp4", 2)], "of the part alone"
    assert kinodex(*command, "--only", "kind=lamp").code == 0
    bad(kinodex, *command, "--only", "kind=kite", code=2, says="part was kind = lamp and is now kind = kite")
    bad(kinodex, *command, code=2, says="part was kind = lamp and is now all")


def test_what_no_question_has_is_refused_with_what_there_is(tmp_path: Path) -> None:
    path, ids, many = questions(tmp_path), tmp_path / "ids.txt", tmp_path / "many"
    many.mkdir()
    films = ("harbour", *(f"film-{number}" for number in range(20)))
    of_films = questions(many, films)
    for only, listed, says in (
        (["kind"], None, "give GROUP=VALUE"),
        (["=kite"], None, "give GROUP=VALUE"),
        (["kind="], None, "give GROUP=VALUE"),
        (["kinds=kite"], None, "got --only kinds=...; it is one of kind"),
        (["kind=Kite"], None, "got --only kind=Kite; kind is one of kite, lamp"),
        ([], b"harbour-1\nharbor-1\n", "--ids has 1 that no question has: harbor-1; there are harbour-0, "),
        ([], b"\n \n", "names no question"),
        ([], b"\xff\xfe\x00", "cannot read"),
        (["kind=kite"], b"harbour-1\n", "no question is in the part kind = kite; 1 ids"),
    ):
        ids.write_bytes(listed or b"")
        with pytest.raises(UsageError) as refused:
            ids_of(SKETCHES, of_films if listed and b"harbor" in listed else path, only, ids if listed else None)
        assert says in str(refused.value)
    rows = [kit.sketch_row(str(number), kind=f"kind-{number:02}") for number in range(40)]
    with pytest.raises(UsageError, match=r"kind-00, kind-01, .*kind-11 and 28 more"):
        ids_of(SKETCHES, kit.published(tmp_path, SKETCHES, *rows), ["kind=none"])
    with pytest.raises(UsageError, match="these questions have no groups"):
        ids_of("own", kit.published(tmp_path, "own"), ["category=x"])


def item(item_id: str, video: str, *kinds: str) -> Item:
    return Item(item_id, video, Question("What?", ("a", "b")), Target(0), {"type": kinds} if kinds else {})


def many() -> list[Item]:
    """700 questions of 70 videos in three categories of very different size."""
    kinds = ["often"] * 600 + ["seldom"] * 93 + ["rare"] * 7
    return [item(f"q{number}", f"v{number % 70}", kind) for number, kind in enumerate(kinds)]


def test_a_part_keeps_the_shares_of_categories_and_spreads_over_videos() -> None:
    part = draw_items(many(), 100, seed=0)
    assert Counter(each.groups["type"] for each in part) == {("often",): 86, ("seldom",): 13, ("rare",): 1}
    assert set(Counter(each.video for each in part).values()) <= {1, 2}
    assert len({each.video for each in part}) == 70
    numbers = [int(each.item_id[1:]) for each in part]
    assert numbers == sorted(numbers)


def test_the_same_seed_draws_the_same_questions_whatever_their_order() -> None:
    def ids(items: Sequence[Item], limit: int, seed: int) -> set[str]:
        return {each.item_id for each in draw_items(items, limit, seed)}

    items = many()
    part = ids(items, 50, 1)
    assert ids(items[::-1], 50, 1) == part
    assert ids(items, 50, 2) != part
    assert part <= ids(items, 699, 1)


def row(video_id: str, uri: str, title: str | None = None) -> VideoRow:
    return VideoRow(
        video_id=video_id,
        uri=uri,
        title=title if title is not None else Path(uri).stem,
        start_s=0.0,
        duration_s=10.0,
        fps=1.0,
        width_px=4,
        height_px=4,
        codec="none",
        frames=10,
        segments=0,
        speech_lines=0,
        decode_errors=0,
        sample_fps=1.0,
        space="words",
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def found(video: str, rows: Sequence[VideoRow], id_map: dict[str, str] | None = None, episodes: bool = False) -> object:
    """The ids that one video of a benchmark is, or why it is none."""
    matching = match_videos([item("1", video)], rows, id_map, episodes)
    return matching.videos.get(video) or matching.missing[0].why


def test_a_video_goes_by_id_title_and_the_last_parts_of_its_uri_and_by_no_part_of_a_name() -> None:
    rows = [
        row("id1", "s3://bucket/a/b/clip.one.mp4", "My film"),
        row("id2", "/x/clip.two.mp4"),
        row("id3", "/x/aBc.mp4"),
    ]
    for called in ("id1", "My film", "clip.one", "clip.one.mp4", "b/clip.one", "a/b/clip.one.mp4"):
        assert found(called, rows) == ("id1",)
    for called in ("abc", "aB"):
        assert found(called, rows) == f"no video of the library has the name {called}"


def test_an_episode_is_all_its_clips_in_order_and_no_clip_of_another() -> None:
    names = ["s05e06_seg02_clip_00", "s05e06_seg01_clip_01", "s05e07_seg01_clip_00", "s05e061_seg01_clip_00"]
    rows = [row(name, f"/tvqa/{name}.mp4") for name in names]
    assert found("s05e06", rows, episodes=True) == ("s05e06_seg01_clip_01", "s05e06_seg02_clip_00")
    assert found("s05e06", rows) == "no video of the library has the name s05e06"
    assert found("s05e06", [*rows, row("whole", "/x/s05e06.mkv")], episodes=True) == ("whole",)
    folders = [row("one", "/tvqa/s05e08/clip_00.mp4"), row("two", "/tvqa/s05e08/clip_01.mp4")]
    assert found("s05e08", folders, episodes=True) == ("one", "two")


def test_an_imported_episode_has_its_clips_on_its_time_line(tmp_path: Path) -> None:
    """A question's clip and seconds are re-indexed (LongVideoAgent, section 4.1); other clips are no grounding."""
    said = {f"s05e06_seg02_clip_{number}": f"Amy : line {number} <eos>" for number in (14, 15, 16)}
    library = make_library(tmp_path / "library", {"film": film(1, 20)})
    read = transcripts(written(tmp_path / "clips.json", said), clip_s=60.0)
    assert import_text(library, "speech", "subtitles", "here", read, {}).made == 1
    items = read_benchmark("longtvqa", kit.published(tmp_path, "longtvqa")).items
    videos = library.videos()
    (episode,) = matched = match_videos(items, videos, None, episodes=True).videos["s05e06"]
    by_id = {each.video_id: each for each in videos}
    (item,), problems = complete_items(items, {items[0].item_id: matched}, by_id, None, library.segments)
    assert (item.truth.clip, item.truth.clip_s, problems) == (episode, (60.0, 120.0), ())
    assert item.truth.evidence[0] == pytest.approx((72.3, 80.11))
    for start_s, visited in ((0.0, False), (60.0, True), (120.0, False)):
        record = answer(item.item_id, visited=(Evidence(episode, start_s, start_s + 60.0),))
        assert score(item, record, matched, 1.0, valid=True).visited == visited, start_s


# Files of rows: what cannot be one is noted or refused, and swallows no other.


@pytest.mark.parametrize(
    ("text", "items", "says"),
    [
        ('q,a\n1,"x\n2,y\n3,z\n', [], ["line 4: lines 2 to 4 cannot be read"]),
        ('q,a\n1,"x\n2,y\n3,"z"\n4,w\n', [{"q": "4", "a": "w"}], ["line 4: lines 2 to 4 cannot be read"]),
        ('q,a\n1,"x\n' + "y" * 140_000 + "\n2,z\n", [{"q": "2", "a": "z"}], ["line 3: lines 2 to 3 cannot be read"]),
        ('q,a\n1,"two\nlines"\n2,"z" so\n', [{"q": "1", "a": "two\nlines"}, {"q": "2", "a": "z so"}], []),
        ("q,a\n1,two\u2028lines\n", [{"q": "1", "a": "two\u2028lines"}], []),
    ],
)
def test_a_quotation_mark_that_is_not_closed_swallows_no_row_in_silence(
    tmp_path: Path, text: str, items: list[dict[str, str]], says: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    rows = list(csv_rows(path))
    assert [raw for _, raw in rows if not isinstance(raw, BadRow)] == items
    told = [f"{where}: {raw}" for where, raw in rows if isinstance(raw, BadRow)]
    assert [line.startswith(start) for line, start in zip(told, says, strict=True)] == [True] * len(says)
