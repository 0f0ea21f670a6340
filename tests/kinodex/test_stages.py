"""The registry of stages: each is a command and can be added from Python, those of other distributions as well."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field
from typer.main import get_command
from typer.testing import CliRunner

import kinodex as front
from kinodex import AddedRows, Flag, Stage, StageWork
from kinodex.cli.add.app import stage_command
from kinodex.cli.main import app
from kinodex.jobs.add.stage import option_of
from kinodex.jobs.add.stages import STAGES, Detections
from kinodex.jobs.errors import UsageError
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.chat_server import ChatServer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda body: {"caption": "a car", "confidence": 90}) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("name", ["captions", "map", "shots"])
def test_a_stage_adds_the_same_from_python_and_from_the_command_line(
    name: str, small_library: Path, server: ChatServer, tmp_path: Path, kinodex: Kinodex
) -> None:
    """One with a model and options, one with an argument, one with neither; tests/jobs/add run each as a command."""
    here, there = (str(shutil.copytree(small_library, tmp_path / each)) for each in ("here", "there"))
    file = tmp_path / "mine.py"
    file.write_text("def bright(pictures):\n    return pictures.mean(axis=(1, 2, 3))\n")
    settings: dict[str, dict[str, Any]] = {
        "captions": {"model": "tester", "base_url": server.base_url, "frames_a_segment": 1},
        "map": {"function": f"{file}:bright"},
        "shots": {},
    }
    options = list[object]()
    for setting, value in settings[name].items():
        options += [value] if setting == "function" else [option_of(STAGES[name], setting), value]
    report = front.open(here).add(name, **settings[name])
    ran = json_of(kinodex, "add", name, there, *options, code=3 if report.failed or report.incomplete else 0)
    assert (report.added, report.failed) == (ran["added"], ran["failed"]) and report.added > 0
    assert report.rows == ran["rows"] and (report.stage, report.model) == (ran["stage"], ran["model"])
    assert front.open(here).add(name, **settings[name]).outcomes == [], "what is there is not made again"


def test_every_setting_with_a_flag_is_an_option_with_its_help_and_its_limits() -> None:
    for name, kind in STAGES.items():
        page = CliRunner(env={"COLUMNS": "400", "TERM": "dumb"}).invoke(app, ["add", name, "--help"]).output
        for setting, field in kind.model_fields.items():
            flag = next((each for each in field.metadata if isinstance(each, Flag)), None)
            if flag is None:
                assert f"--{setting.replace('_', '-')} " not in page
            else:
                assert flag.help.split(".")[0] in page, (name, setting)
                assert flag.is_argument or option_of(kind, setting) in page, (name, setting)


def test_a_setting_that_is_added_to_a_stage_is_an_option_without_another_edit() -> None:
    class More(Detections):
        """Find things, and more."""

        most: Annotated[int, Flag("Things of a frame that are kept.")] = Field(default=7, ge=1, le=99)

    import typer

    holder = typer.Typer()
    holder.command("more")(stage_command("more", More))
    page = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(holder, ["--help"]).output
    assert "Find things, and more." in page
    (line,) = [line for line in page.splitlines() if "--most" in line]
    assert "Things of a frame that are kept." in line and "1<=x<=99" in line and "default: 7" in line
    assert {each.name for each in get_command(holder).params} >= {"most", "min_score", "model", "library", "video"}


def test_what_makes_no_sense_is_refused_in_one_line(small_library: Path, kinodex: Kinodex) -> None:
    opened = front.open(str(small_library))
    for add, says in (
        (lambda: opened.add("caption", model="a/b"), "got 'caption' to add; did you mean 'captions'?"),
        (lambda: opened.add("captions"), "got no --model to add captions"),
        (lambda: opened.add("captions", model="a/b", frames_a_segment=0), "got --frames-a-segment 0; input should be"),
        (lambda: opened.add("captions", model="a/b", framse=3), "got framse, which is no setting of captions; "),
        (lambda: opened.add("detections", model="a/b", min_score="much"), "got --min-score 'much'; "),
        (lambda: opened.add("clips", model="a/b", window_s=9), "got windows of 9 s; they have 2 to 8"),
        (lambda: opened.add(STAGES["shots"](), batch=3), "got batch beside a stage"),
    ):
        with pytest.raises(UsageError) as refused:
            add()
        assert str(refused.value).startswith(says), refused.value
        assert "\n" not in str(refused.value)
    bad(kinodex, "add", "detections", small_library, "--model", "a/b", "--min-score", 2, code=2, says="min-score")


PLUGIN = '''
from typing import Annotated

from pydantic import Field

from kinodex import AddedRows, Flag, Stage, StageWork


class Counting(StageWork):
    def rows_of(self, video):
        from tests.support.libraries.random_library import caption

        numbers = [each.segment_no for each in self.library.segments(video.video_id)]
        rows = [caption(number, f"{{self.stage.words}} {{number}}") for number in numbers]
        return AddedRows(rows, len(rows))

    def write(self, rows):
        self.library.additions.add_captions(rows, self.model)


class Count(Stage):
    """Count the segments."""

    name = "captions"
    work = Counting
    model: str = "counter"
    words: Annotated[str, Flag("What stands before the number.")] = "segment"
{more}
'''


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a distribution that registers stages, one of which cannot be loaded."""
    folder = tmp_path / "site"
    (folder / "counting-1.0.dist-info").mkdir(parents=True)
    (folder / "counting-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (folder / "counting-1.0.dist-info" / "entry_points.txt").write_text(
        "[kinodex.stages]\ncount = counting_stage:Count\nbroken = counting_stage:Missing\n"
        "odd = counting_stage:Counting\ncaptions = counting_stage:Count\n"
    )
    (folder / "counting_stage.py").write_text(PLUGIN.format(more=""))
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("counting_stage", None)


def test_a_stage_of_another_distribution_is_one_like_those_of_kinodex(
    distribution: Path, small_library: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    uri = str(shutil.copytree(small_library, tmp_path / "library"))
    listed = kinodex("add", "--help").out
    assert "Count the segments." in listed and "Describe every segment in words" in listed
    report = json_of(kinodex, "add", "count", uri, "--words", "part")
    opened = front.open(uri)
    assert (report["added"], report["model"]) == (3, "counter")
    video = opened.videos()[0]
    assert opened.captions(video)[0].text == "part 0"
    assert opened.add("count", words="part").outcomes == []
    bad(kinodex, "add", "count", uri, "--wrods", "x", code=2, says="No such option")
    bad(kinodex, "add", "broken", uri, code=2, says="cannot load the stage 'broken' of counting: AttributeError")
    bad(kinodex, "add", "odd", uri, code=2, says="the stage 'odd' of counting is counting_stage:Counting, which is no")
    with pytest.raises(UsageError, match="cannot load the stage 'broken'"):
        opened.add("broken")
    assert "--frames-a-segment" in kinodex("add", "captions", "--help").out, "a name of kinodex's own stays its own"


def test_a_setting_that_such_a_stage_gets_is_in_its_help(distribution: Path, kinodex: Kinodex) -> None:
    for more, is_there in (("", False), ('    loud: Annotated[bool, Flag("In capitals.", "--loud")] = False', True)):
        (distribution / "counting_stage.py").write_text(PLUGIN.format(more=more))
        shutil.rmtree(distribution / "__pycache__", ignore_errors=True)
        sys.modules.pop("counting_stage", None)
        page = kinodex("add", "count", "--help").out
        assert ("In capitals." in page) == is_there and "What stands before the number." in page


class Nothing(StageWork[Any]):
    """Work of a stage that finds nothing."""

    def rows_of(self, video: Any) -> AddedRows:
        return AddedRows([], 0)

    def write(self, rows: Any) -> None:
        raise AssertionError("there is nothing to write")


class Silent(Stage):
    """A stage that finds nothing."""

    name = "detections"
    work = Nothing


def test_a_stage_can_be_added_as_it_is(small_library: Path, tmp_path: Path) -> None:
    opened = front.open(shutil.copytree(small_library, tmp_path / "library"))
    title = opened.videos()[0].title
    report = opened.add(Silent(), videos=title)
    assert ([each.title for each in report.outcomes], report.model) == ([title], "Silent")
    assert not opened.add(Silent(), videos=title).outcomes, "what was added once is not added again"
