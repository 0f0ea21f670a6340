"""The choice of models: who answers for each role, under which settings, from which cache, and clear errors."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.similarity.model import SimilarityModel
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, cache_file, chosen_models, describe_models, has_prices
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.wire import QUERIES, discover

ROLES = """
[default]
model = "large"
base_url = "http://localhost:8000/v1"
temperature = 0.2
at_once = 6
[vision]
model = "seer"
price = {input = 1.0}
[policy]
model = "local:folder"
"""


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    path = tmp_path / "roles.toml"
    path.write_text(ROLES)
    return path


def opened(choice: ModelChoice) -> Any:
    """Open the models of a choice, for an environment at which they do not look."""

    async def run() -> Any:
        async with chosen_models(choice) as models_for:
            nothing: Any = None
            return models_for(nothing)

    return asyncio.run(run())


def test_models_are_named_with_the_settings_that_their_replies_depend_on(roles: Path, tmp_path: Path) -> None:
    assert isinstance(opened(ModelChoice()), SimilarityModel)
    assert describe_models(ModelChoice()) == {"default": "similarity"} and not ModelChoice().has_language
    choice = ModelChoice("large", "http://localhost:8000/v1", cache_path=tmp_path / "replies.sqlite", sample=2)
    models = opened(choice)
    assert list(models) == ["default"] and isinstance(models["default"], OpenAIModel) and choice.has_language
    assert describe_models(choice) == {"default": "large at http://localhost:8000/v1, sample=2"}
    assert describe_models(ModelChoice(roles_file=roles)) == {
        "default": "large at http://localhost:8000/v1, temperature=0.2",
        "vision": "seer at http://localhost:8000/v1, temperature=0.2",
        "policy": "local:folder, temperature=0.2",
    }


def test_processes_share_what_a_role_may_have_in_flight() -> None:
    def at_once(**options: Any) -> int:
        choice = ModelChoice("m", "http://localhost:1/v1", cache=False, **options)
        role = opened(choice)["default"].role
        return int(role.at_once)

    assert [at_once(), at_once(at_once=6), at_once(at_once=6, share=3), at_once(at_once=2, share=5)] == [8, 6, 2, 1]


GIVEN = {"base_url": "http://127.0.0.1:7/v1", "input_price": 3.0, "at_once": 5}


def test_what_a_file_of_roles_does_not_say_the_options_do(tmp_path: Path) -> None:
    """Of the last table some settings are its own, of others none; an option that no role takes is refused."""
    said = {"base_url": '"http://127.0.0.1:8/v1"', "price": "{output = 4.0}", "at_once": "6"}
    for tables, own in product(("", "[default]", "[policy] [vision]", "[default] [vision]"), range(4)):
        owned, names = list(said)[:own], tables.split()
        lines = list[str]()
        for name in names:
            lines += [name, 'model = "m"', *(f"{each} = {said[each]}" for each in owned if name == names[-1])]
        (tmp_path / "roles.toml").write_text("\n".join(lines))
        choice = ModelChoice(roles_file=tmp_path / "roles.toml", cache=False, **GIVEN)  # type: ignore[arg-type]
        if owned and len(names) == 1:
            with pytest.raises(UsageError, match=r"got --base-url, and every role in .* has its own base_url"):
                opened(choice)
            continue
        roles = {f"[{name}]": model.role for name, model in opened(choice).items()}
        assert set(roles) == set(names)
        for name, role in roles.items():
            kept = owned if name == names[-1] else []
            assert role.base_url == ("http://127.0.0.1:8/v1" if "base_url" in kept else "http://127.0.0.1:7/v1")
            assert (role.price.input, role.price.output) == ((0.0, 4.0) if "price" in kept else (3.0, 0.0))
            assert role.at_once == (6 if "at_once" in kept else 5)
        assert has_prices(choice) == bool(names)


def test_a_role_takes_from_default_before_it_takes_from_the_options(tmp_path: Path) -> None:
    text = '[default]\nmodel = "m"\nbase_url = "http://127.0.0.1:8/v1"\nat_once = 6\n[vision]\nmodel = "seer"\n'
    (tmp_path / "roles.toml").write_text(text)
    models = opened(ModelChoice(roles_file=tmp_path / "roles.toml", cache=False, at_once=5, input_price=3.0))
    assert {(each.role.base_url, each.role.at_once, each.role.price.input) for each in models.values()} == {
        ("http://127.0.0.1:8/v1", 6, 3.0)
    }


def test_replies_are_stored_where_the_choice_says(tmp_path: Path) -> None:
    async def ask(choice: ModelChoice) -> bool:
        async with chosen_models(choice) as models_for:
            nothing: Any = None
            models: Any = models_for(nothing)
            return bool((await models["default"].ask(discover())).cached)

    with ChatServer(lambda _: QUERIES, models=("m",)) as server:
        stored = ModelChoice("m", server.base_url, cache_path=tmp_path / "mine.sqlite")
        assert [asyncio.run(ask(stored)) for _ in range(2)] == [False, True]
        assert (tmp_path / "mine.sqlite").is_file()
        assert not asyncio.run(ask(ModelChoice("m", server.base_url, cache=False)))
    assert len(server.seen) == 2


def test_the_cache_is_in_the_users_folder_unless_a_variable_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KINODEX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_file() == tmp_path / "xdg" / "kinodex" / "replies.sqlite"
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "own"))
    assert cache_file() == tmp_path / "own" / "replies.sqlite"


def test_a_choice_has_prices_only_if_one_is_given_and_what_makes_no_sense_is_one_clear_error(roles: Path) -> None:
    url, nowhere = "http://localhost:1/v1", Path("/nowhere/roles.toml")
    for choice in (ModelChoice(), ModelChoice("replay:trace.jsonl"), ModelChoice("m", url)):
        assert not has_prices(choice)
    assert has_prices(ModelChoice("m", url, output_price=1.0)) and has_prices(ModelChoice(roles_file=roles))
    for choice, problem in (
        (ModelChoice(base_url=url), "got --base-url without --model"),
        (ModelChoice(roles_file=nowhere), "give a TOML file with a table for each role"),
        (ModelChoice("m", roles_file=nowhere), r"name it in the file's table \[default\]"),
    ):
        with pytest.raises(UsageError, match=problem):
            opened(choice)
