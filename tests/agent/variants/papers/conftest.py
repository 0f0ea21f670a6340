"""A film of three minutes with subtitles, and with words that no paper's agent reads."""

from __future__ import annotations

import pytest

from kinodex.agent.videos.environment import Environment
from kinodex.index.rows import SpeechRow
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.screen_text.lines import Line, add_screen_text

SPOKEN = ((10.0, 12.0, "Welcome."), (71.0, 73.0, "Look at my kite!"), (131.0, 133.0, "It is gone."))
WRITTEN = "NO KITES HERE"


@pytest.fixture(scope="package")
def told(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("papers")
    library = make_library(folder / "library", {"film": film(5, 180, {70: ("red kite desert", 6)})})
    video_id = library.video("film").video_id
    library.writer.add_speech({video_id: [SpeechRow(video_id, *line, source="subtitles") for line in SPOKEN]})
    add_screen_text(library, video_id, [Line(72.0, 74.0, WRITTEN)])
    return environment_of(library)
