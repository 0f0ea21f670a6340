"""A forecast of summaries counts the requests that a run sends."""

from __future__ import annotations

from kinodex.jobs.add.summaries import Summaries
from kinodex.jobs.forecast import forecast_summaries
from tests.support.scenes.chaptered_film import make_film
from tests.support.servers.chat_server import ChatServer


def test_a_forecast_is_what_a_run_sends(kinodex, tmp_path):
    library = make_film(tmp_path / "library", "aa")
    with ChatServer(lambda body: {"title": "At the harbour", "summary": "Boats leave."}) as server:
        options = ("add", "summaries", library.uri, "--model", "tester", "--base-url", server.base_url)
        dry = kinodex(*options, "--dry-run")
        assert dry.code == 0 and server.seen == [] and "scenes and chapters" in dry.out
        role = Summaries("tester", server.base_url, input_price=1.0).role
        expected = forecast_summaries(library, library.videos(), role, 4)
        assert kinodex(*options).code == 0
        assert expected.calls == len(server.seen)
        assert expected.frames == 0 and expected.cost > 0
        rows = sum(len(library.scenes.rows(video.video_id)) for video in library.videos())
        assert expected.questions == rows
    assert forecast_summaries(library, [], role, 4).calls == 0
