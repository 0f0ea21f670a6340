"""Text towers are loaded once, and while one is loaded the searches that need none go on."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest

from kinodex.index.errors import TorchMissing
from kinodex.index.spaces.load import load_text_tower
from kinodex.web.search import TextTowers
from tests.support.libraries.viewer_library import served

LONG_S = 60


class Gate:
    """Loads the built-in tower once it is opened, and notes for which library."""

    def __init__(self):
        self.loads = []
        self.began, self.opened = threading.Event(), threading.Event()

    def __call__(self, uri, digest):
        self.loads.append(uri)
        self.began.set()
        assert self.opened.wait(LONG_S)
        return load_text_tower("builtin")


def test_a_tower_is_loaded_once_for_all_libraries_of_its_space(shown):
    gate = Gate()
    gate.opened.set()
    towers, space = TextTowers(gate), shown.library.fingerprint
    first, same, other = (towers.begin(uri, space) for uri in ("one", "one", "two"))
    assert first is same
    assert first.result(LONG_S) is other.result(LONG_S)
    assert gate.loads == ["one"]
    towers.close()


def test_a_tower_that_could_not_be_loaded_is_tried_again(shown):
    faults = [TorchMissing("no torch"), None]

    def load(uri, digest):
        if (fault := faults.pop(0)) is not None:
            raise fault
        return load_text_tower("builtin")

    towers, space = TextTowers(load), shown.library.fingerprint
    with pytest.raises(TorchMissing):
        towers.begin("one", space).result(LONG_S)
    assert towers.begin("one", space).result(LONG_S).dim == space.dim
    towers.close()


def test_at_the_end_no_further_tower_is_loaded(shown):
    gate, space = Gate(), shown.library.fingerprint
    towers = TextTowers(gate)
    first, second = towers.begin("one", space), towers.begin("two", space)
    assert gate.began.wait(LONG_S)
    towers.close()
    assert second.cancelled() and not first.done()
    gate.opened.set()
    first.result(LONG_S)
    assert gate.loads == ["one"]


def test_a_search_of_the_transcript_is_answered_while_another_waits_for_the_tower(shown):
    gate = Gate()
    with served(shown.library.uri, towers=TextTowers(gate)) as address, ThreadPoolExecutor(1) as client:

        def found(query):
            with urlopen(f"{address}/data/libraries/0/search?{query}", timeout=LONG_S) as reply:
                return json.load(reply)

        waiting = client.submit(found, "text=red&kind=frames")
        assert gate.began.wait(LONG_S)
        try:
            assert found("text=red&kind=transcript")["count"] >= 0
            assert not waiting.done()
        finally:
            gate.opened.set()
        assert waiting.result(LONG_S)["count"]
