"""The commands and Python of docs/extract.md and docs/collection.md run as they stand there, before a model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.store.schema import extracts_schema
from tests.support.collection import Observer, draw
from tests.support.command import Kinodex, Ran
from tests.support.extracts import row_of
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.servers.chat_server import SEES, ChatServer
from tests.support.servers.rules_prompt import read
from tests.support.world.observer import Eyes
from tests.support.world.sights import PERFECT, Stage

PLACE = "http://localhost:8000/v1"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def followed(kinodex: Kinodex, server: ChatServer, blocks: list[str], without: str = "\n") -> list[Ran]:
    """The commands of a page run in their order, but for those that begin so."""
    lines = [line.removeprefix("$ kinodex ") for block in blocks for line in block.splitlines()]
    ran = [
        kinodex(*shlex.split(line.replace(PLACE, server.base_url))) for line in lines if not line.startswith(without)
    ]
    assert all(each.code == 0 for each in ran), ran
    return ran


def visit(body: dict) -> dict:
    said = str([message["content"] for message in body["messages"]])
    row = {"place": next(each for each in PLACES if each in said), "night": None, "people": ["a cook"], "evidence": [1]}
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    return {"rows": [row]} if "rows" in asked else row


def test_a_table(root: Path, tmp_path: Path, kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (root / "docs" / "extract.md").read_text(encoding="utf-8")
    blocks = dict(BLOCK.findall(page))
    monkeypatch.chdir(tmp_path)
    make_film(tmp_path / "library", "aa")
    Path("visit.json").write_text(blocks["json"])
    with ChatServer(visit, models=["gpt-4o-mini"]) as server:
        printed = [each.out for each in followed(kinodex, server, [blocks["console"]])]
        names: dict = {}
        exec(blocks["python"].replace(PLACE, server.base_url), names)
    assert "| extracts | 4 | 4 |" in printed[0] and "added 4 extracts" in printed[1]
    assert "kitchen" in printed[2] and "kitchen" in printed[3]
    assert Path("visits.csv").read_text().count("\n") == 5
    assert names["visits"].num_rows == 48 and set(names["frame"]["place"]) == set(PLACES)
    html = names["visits"]._repr_html_()
    assert html.count("<img") == 24 and "and 24 more" in html and "place harbour, people a cook" in html
    columns = page.partition("| column |")[2].partition("\n\n")[0]
    shown = set(extracts_schema(pa.schema([])).names) - {"fault", "terms"}
    assert all(f"`{name}`" in columns for name in shown)


@pytest.mark.slow
def test_ten_thousand_films(
    root: Path,
    tmp_path: Path,
    kinodex: Kinodex,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of films that the stand-in knows by their pictures; six, drawn a frame a second, are as good as a dozen here."""
    blocks = BLOCK.findall((root / "docs" / "collection.md").read_text(encoding="utf-8"))
    of = {kind: [block for each, block in blocks if each == kind] for kind, _ in blocks}
    monkeypatch.chdir(tmp_path)
    Path("tests").symlink_to(root / "tests")
    draw(Path("films"), 6, 3302)
    Path("films.csv").write_text(of["text"][0])
    Path("setting.json").write_text(of["json"][0])
    stages: dict[str, Stage] = {}
    observer = Observer(Eyes(), PERFECT)

    def reply(body: dict) -> dict:
        if not stages:
            library = Library.open("library")
            stages.update(
                {row.title: Stage.of_script(Path(f"films/{row.title}.script.json")) for row in library.videos()}
            )
            observer.eyes = Eyes.of(library, library.videos(), stages)
        asked = read(body)
        if asked.reply != "Setting":
            return observer(body)
        row = row_of([observer.eyes.look(frame)[1] for frame in asked.frames], 1)
        return {"place": row["place"], "night": row["night"], "evidence": [1]}

    with ChatServer(reply, models=["gpt-4o-mini"]) as server:
        server.model_facts = SEES
        printed = followed(kinodex, server, of["console"], without="$ python")
        names: dict = {}
        exec(of["python"][0].replace(PLACE, server.base_url), names)
    bill, asked = printed[-3], printed[-2]
    assert "The model writes a plan of its own first" in bill.out and "| films | 6 | 6 |" in bill.out
    assert "planned, by the model: look for" in asked.err and "Not looked at: what each film shows between" in asked.out
    assert asked.out.count("film-0") >= 2 and Path("dogs.csv").read_text().count("\n") >= 2
    assert names["answer"].ledger.calls == 0, "these films were looked at before"
    assert "4 films not asked about, by camera = 'front'" in capsys.readouterr().out
