"""A small library with questions, and a server that answers all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs.eval_runs import ANSWER, caption_library, write_questions
from tests.support.servers.chat_server import ChatServer


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` of captions alone and `questions.jsonl`; tests only read it."""
    folder = tmp_path_factory.mktemp("eval")
    caption_library(folder / "library")
    write_questions(folder)
    return folder


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda body: ANSWER) as server:
        yield server
