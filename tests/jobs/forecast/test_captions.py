"""Captions: the forecast of a library against what the same requests cost over the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.prompts import estimate_tokens, text_tokens
from kinodex.index.library import Library
from kinodex.jobs.add.captions import Captions
from kinodex.jobs.add.run import add
from kinodex.jobs.forecast import forecast_captions, pending_videos
from tests.support.servers.chat_server import Behaviour, ChatServer

REPLY = {"caption": "A boat lies on a beach at sea, and a cat sits on it; it rains.", "confidence": 80}


class MeteredServer(ChatServer):
    """A server that counts tokens by the estimate of forecasts."""

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        usage = {
            "prompt_tokens": estimate_tokens(body["messages"]),
            "completion_tokens": text_tokens(json.dumps(REPLY)),
        }
        return replace(super().answer(headers, body), usage=usage)


def test_a_forecast_of_captions_is_near_their_bill(
    small_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = Library.open(str(shutil.copytree(small_library, tmp_path / "library")))
    with MeteredServer(lambda body: REPLY, models=["tester"]) as server:
        stage = Captions("tester", server.base_url, input_price=2.0, output_price=8.0)
        videos = pending_videos(library, "tester", None, ())
        expected = forecast_captions(library, videos, stage.role, stage.frames_a_segment)
        half = forecast_captions(library, videos, stage.role, stage.frames_a_segment, 0.5)
        assert server.seen == []
        report = add(library, stage)
    assert expected.calls == report.rows == sum(row.segments for row in videos)
    assert expected.input_tokens == pytest.approx(report.usage.input_tokens, rel=0.1)
    assert report.usage.cost / 1.5 <= expected.cost <= 1.5 * report.usage.cost
    assert half.cost == expected.cost / 2
    assert pending_videos(library, "tester", None, ()) == []
