"""A name with accents is one name, whether each is a letter of its own or, as on a Mac, a mark after its letter."""

from __future__ import annotations

import json
import unicodedata
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest

from kinodex.index.library import Library
from kinodex.jobs.metadata.input import read_metadata
from kinodex.jobs.metadata.update import set_metadata
from kinodex.pipeline.sources import list_sources, named_sources, sidecar_tags
from tests.support.command import Kinodex, json_of
from tests.support.models.stage_models import tiny_film
from tests.support.servers.serve_server import serving
from tests.world.drawn_space import DRAWN

NAME = "Café Málaga"
FORMS = [unicodedata.normalize(form, NAME) for form in ("NFC", "NFD")]
SPEECH = "1\n00:00:01,000 --> 00:00:02,000\nhello\n"


@pytest.mark.parametrize(("film", "words"), [*product(FORMS, FORMS)])
def test_subtitles_are_found_beside_their_film(film: str, words: str, tmp_path: Path) -> None:
    path, sidecar = tmp_path / f"{film}.mp4", tmp_path / f"{words}.en.srt"
    (tmp_path / f"{words}.trailer.mp4").touch()
    for each in (path, sidecar, tmp_path / f"{words}.trailer.srt"):
        each.touch()
    for found in (list_sources([str(tmp_path)]), list_sources([str(path)]), named_sources([str(path)])):
        (source,) = (each for each in found if each.uri == str(path))
        assert source.sidecars == (str(sidecar),)
    assert sidecar_tags(str(sidecar), film) == (FORMS[0], "en")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_film_is_named_in_either_form(form: str, kinodex: Kinodex, tmp_path: Path) -> None:
    film, library = tiny_film(tmp_path / f"{form}.mp4", 3, 0), tmp_path / "library"
    film.with_suffix(".srt").write_text(SPEECH)
    assert kinodex("ingest", film, "--library", library, "--space", DRAWN).code == 0
    opened = Library.open(str(library))
    (video,) = opened.videos()
    assert video.speech_lines == 1 and video.uri == str(film)
    for name in FORMS:
        table = tmp_path / "table.csv"
        table.write_text(f"file,place,tags\n{name}.mp4,{name},x\n")
        assert set_metadata(opened, read_metadata([table]), opened.videos()).unmatched == ()
        for condition in (f"title = '{name}'", f"place = '{name}'", f"uri LIKE '%{name}.mp4'", f"title IN ('{name}')"):
            assert opened.metadata.matching(condition) == {video.video_id}, condition
        assert json_of(kinodex, "search", library, "hello", "--in", "speech", "--where", f"title = '{name}'")
        assert json_of(kinodex, "search", library, "hello", "--in", "speech", "--video", name)
        said = tmp_path / "said" / f"{name}.en.srt"
        said.parent.mkdir(exist_ok=True)
        said.write_text(SPEECH)
        assert json_of(kinodex, "import", "speech", said.parent, library, "--model", f"m{len(name)}")["new_videos"] == 0
        said.unlink()
    found = json_of(kinodex, "sql", library, f"SELECT video_id FROM videos WHERE title = '{FORMS[0]}'")
    assert video.video_id in json.dumps(found)
    with serving([library], tmp_path / "traces") as client:
        for name in FORMS:
            page = client.get(f"/data/libraries/0/videos?{urlencode({'words': name})}").json
            assert page["count"] == 1, name
