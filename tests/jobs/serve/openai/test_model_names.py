"""Names of models are unique, and an unknown one is refused with those that there are."""

from __future__ import annotations

import pytest

from kinodex.agent.ask import variant_named
from kinodex.web.openai_chat import RequestRefused, chat_models, error_body, find_model, library_names


def test_libraries_are_named_by_the_last_part_of_their_place() -> None:
    uris = ["/home/me/films/", "films", "s3://bucket/films?versionId=3", "a:b", "/", "films-2"]
    assert library_names(uris) == ("films", "films-2", "films-3", "a-b", "library", "films-2-2")


def test_a_model_for_each_library_and_agent() -> None:
    models = chat_models(["films"], variant_named("vca"), has_language=False)
    names = [each.name for each in models]
    assert names[:3] == ["films", "films:vca", "films:eea"]
    assert "films:videoseek" not in names, "it needs language"
    assert "films:videoseek" in [each.name for each in chat_models(["films"], variant_named("vca"), has_language=True)]
    assert len(set(names)) == len(names)
    assert (find_model(models, "films").agent, find_model(models, "films:eea").agent) == (None, "eea")


def test_an_unknown_model_is_refused_with_those_that_there_are() -> None:
    models = chat_models(["films", "tapes"], variant_named("eea"), has_language=True)
    with pytest.raises(RequestRefused) as caught:
        find_model(models, "gpt-4o")
    status, body = error_body(caught.value)
    assert (status, body["error"]["code"], body["error"]["param"]) == (404, "model_not_found", "model")
    assert "films, films:eea" in body["error"]["message"]
