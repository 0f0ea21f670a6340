"""The choice of models: similarity, a recorded trace, endpoints, or a language model in this process.

`run_now` runs what asks them in a plain function, whether or not an event loop runs already, as it does in a notebook.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kinodex.agent.protocol.exchange import Model, Models
from kinodex.agent.videos.environment import Environment
from kinodex.index.named_files import read_toml
from kinodex.jobs.errors import UsageError
from kinodex.jobs.model_loop import ModelLoop

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Send
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role
    from kinodex.agent.variants.base import Variant

A = TypeVar("A")
SIMILARITY = "similarity"
REPLAY = "replay:"
LOCAL = ("local:", "constrained:")
"""A causal language model in this process, the second with constrained decoding. As --model it is the policy, and
similarity all other roles."""
REPLY_SETTINGS = {
    "temperature",
    "max_tokens",
    "reasoning",
    "context_tokens",
    "seed",
    "extra",
    "image_side_px",
    "detail",
    "images",
}
"""Settings of a role on which replies depend, beside its model and endpoint."""
WHOLE_BYTES = 16 * 2**20
"""Of a larger file of weights the beginning and the end tell it from another: a digest of all of it takes too long."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The user's options for models. `roles_file` is a TOML file with a table for each role, which takes from the other
    options what it does not say.

    `at_once` is the number of requests that a role has in flight unless its own settings give one; None: its default.
    `share` is the number of processes that share these. `charge_cached`: replies from the cache cost as much as new
    ones. `cache_path` is the file of the cache; None: that of `cache_file`.
    """

    model: str = SIMILARITY
    base_url: str | None = None
    roles_file: Path | None = None
    input_price: float = 0.0
    output_price: float = 0.0
    cache: bool = True
    sample: int = 0
    at_once: int | None = None
    share: int = 1
    charge_cached: bool = False
    cache_path: Path | None = None

    @property
    def has_language(self) -> bool:
        """False if similarity answers everything: agents and judges that need sentences cannot use it."""
        return self.roles_file is not None or self.model != SIMILARITY

    @property
    def is_replay(self) -> bool:
        """True if a recorded trace answers."""
        return self.roles_file is None and self.model.startswith(REPLAY)

    @property
    def is_local(self) -> bool:
        """True if the policy is a language model in this process."""
        return self.roles_file is None and self.model.startswith(LOCAL)

    @property
    def may_use_endpoints(self) -> bool:
        """True if the models have settings by role, and may be behind endpoints."""
        return self.has_language and not self.is_replay and not self.is_local


ModelsFor = Callable[[Environment], Models]
"""A function of an environment: endpoints are the same for all environments, similarity is not."""


def check_sight(choice: ModelChoice, agent: Variant) -> None:
    """Raise `UsageError`, before it is loaded, for a model of this process where the agent shows it pictures."""
    if not (choice.is_local and agent.needs_pictures):
        return
    from kinodex.agent.catalogue import VARIANTS

    readers = ", ".join(each.name for each in VARIANTS if each.sees_video and not each.needs_pictures)
    raise UsageError(
        f"got --model {choice.model}, which reads only text, and the agent {agent.name} shows it frames; give --agent "
        f"with one that reads words ({readers}), or a model that sees: --model NAME --base-url URL"
    )


@asynccontextmanager
async def chosen_models(choice: ModelChoice) -> AsyncIterator[ModelsFor]:
    """Open the models of a choice; close them at the end.

    Raises UsageError or an AgentError if the choice is invalid or a key is missing.
    """
    if not choice.has_language:
        if choice.base_url:
            raise UsageError("got --base-url without --model; name the model that the server serves")
        from kinodex.agent.similarity.model import SimilarityModel

        yield SimilarityModel
    elif choice.is_replay:
        from kinodex.agent.traces.replay import ReplayModel

        replay = ReplayModel(Path(choice.model.removeprefix(REPLAY)))
        yield lambda environment: replay
    elif choice.is_local:
        from kinodex.agent.similarity.model import SimilarityModel

        local = open_local(choice.model)
        yield lambda environment: {"policy": local, "default": SimilarityModel(environment)}
    else:
        async with role_models(choice) as models:
            yield lambda environment: models


def run_now(call: Coroutine[Any, Any, A]) -> A:
    """Run a coroutine to its end; where an event loop runs already (in a notebook, say) on a thread of its own.

    An interrupt of the caller cancels it there too, and waits for its end: no further call of a model begins.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    with ModelLoop() as loop:
        return loop.run(call)


@asynccontextmanager
async def role_models(choice: ModelChoice) -> AsyncIterator[Mapping[str, Model]]:
    """Open the models of a choice that need no library, by role: behind endpoints, or in this process."""
    from kinodex.agent.models.openai_model import open_models
    from kinodex.agent.models.response_cache import ResponseCache

    roles = _roles(choice)
    here = {
        name: open_local(role.model, temperature=role.temperature, max_new_tokens=role.max_tokens)
        for name, role in roles.items()
        if role.model.startswith(LOCAL)
    }
    elsewhere = {name: role for name, role in roles.items() if name not in here}
    cache = ResponseCache(choice.cache_path or cache_file()) if choice.cache else nullcontext()
    with cache as opened:
        if opened is not None:
            from kinodex.jobs.kept_files import keep_limits

            limits = keep_limits()
            opened.forget_first(opened.beyond(limits.bytes, limits.days))
        async with open_models(
            elsewhere, cache=opened, sample=choice.sample, charge_cached=choice.charge_cached
        ) as models:
            yield {**models, **here}


@asynccontextmanager
async def open_model(role: Role, send: Send | None = None, *, keep: bool = True) -> AsyncIterator[OpenAIModel]:
    """Open the model of one role, with the cache of replies; unless `keep`, that is read and not added to."""
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.response_cache import ReadOnlyCache, ResponseCache

    with (ResponseCache if keep else ReadOnlyCache)(cache_file()) as cache:
        async with OpenAIModel(role, cache=cache, send=send) as model:
            yield model


def open_local(name: str, **settings: Any) -> Model:
    """Load the model in this process that a name such as "local:FOLDER" or "constrained:FOLDER" says."""
    from kinodex.agent.local.model import CONSTRAINED, load_local_model

    where = name.partition(":")[2]
    return load_local_model(where, constrained=name.startswith(CONSTRAINED), **settings)


def cache_file() -> Path:
    """Return the file of stored replies of language models: in KINODEX_CACHE, else in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("KINODEX_CACHE") or f"{home}/kinodex").expanduser() / "replies.sqlite"


def describe_models(choice: ModelChoice) -> dict[str, str]:
    """Name the model of each role, its endpoint and its settings that are not the default: what answers depend on."""
    if choice.is_local:
        return {"policy": choice.model, "default": SIMILARITY}
    if choice.is_replay or not choice.has_language:
        return {"default": choice.model}
    sample = {"sample": choice.sample} if choice.sample else {}
    named = {}
    for name, role in _roles(choice).items():
        settings = role.model_dump(mode="json", exclude_defaults=True, include=REPLY_SETTINGS) | sample
        place = "" if role.model.startswith(LOCAL) else f" at {role.place}"
        named[name] = f"{role.model}{place}" + "".join(f", {key}={value}" for key, value in settings.items())
    return named


def local_contents(choice: ModelChoice, *others: str | None) -> dict[str, str]:
    """Return a digest of each trace or folder on this machine that answers, or of `others` that help.

    The digest is of what a path holds.
    """
    names = [choice.model]
    if choice.may_use_endpoints:
        names = [role.model for role in _roles(choice).values()]
    named = [name for name in names if name.startswith((REPLAY, *LOCAL))]
    places = {name: Path(name.partition(":")[2]) for name in named}
    places |= {name: Path(name) for name in others if name is not None}
    return {name: content_digest(place) for name, place in places.items() if place.exists()}


def content_digest(place: Path) -> str:
    """Compute a digest of a file, or of all files in a folder, by their names, sizes, beginnings and ends."""
    digest = hashlib.sha256()
    for file in sorted(each for each in (place, *place.rglob("*")) if each.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.relative_to(place)} {size}\n".encode())
        with file.open("rb") as content:
            digest.update(content.read(WHOLE_BYTES))
            content.seek(max(0, size - WHOLE_BYTES))
            digest.update(content.read())
    return digest.hexdigest()[:16]


def endpoint_roles(choice: ModelChoice) -> dict[str, Role]:
    """Return the settings of each role that an endpoint answers; empty for models that are not behind one."""
    if not choice.may_use_endpoints:
        return {}
    return {name: role for name, role in _roles(choice).items() if not role.model.startswith(LOCAL)}


def describe_endpoints(choice: ModelChoice) -> list[str]:
    """Name each model behind an endpoint with its host and its roles: "gpt-4o at api.openai.com (policy, reward)"."""
    roles: dict[str, list[str]] = {}
    for name, role in endpoint_roles(choice).items():
        roles.setdefault(f"{role.model} at {role.place}", []).append(name)
    return [f"{model} ({', '.join(names)})" if len(roles) > 1 else model for model, names in roles.items()]


def describe_prices(choice: ModelChoice) -> dict[str, str]:
    """Prices by role, for a million tokens, of the roles that have any: what a run's costs depend on."""
    prices = {name: role.price for name, role in endpoint_roles(choice).items()}
    return {
        name: ", ".join(f"{kind} {amount:g}" for kind, amount in price.model_dump().items() if amount is not None)
        for name, price in prices.items()
        if price.input or price.output or price.cached_input
    }


def has_prices(choice: ModelChoice) -> bool:
    """Return True if a price is given for any model of this choice: no price is built in."""
    return bool(describe_prices(choice))


def _roles(choice: ModelChoice) -> dict[str, Role]:
    from kinodex.agent.models.roles import read_roles

    roles = read_roles(_settings(choice))
    return {
        name: role.model_copy(update={"at_once": max(1, role.at_once // choice.share)}) for name, role in roles.items()
    }


def _settings(choice: ModelChoice) -> dict[str, dict[str, Any]]:
    """Return the settings of each role.

    They are those of the file, or of one model for all, and what the options say beside them.
    """
    given: dict[str, Any] = {} if choice.at_once is None else {"at_once": choice.at_once}
    if choice.base_url:
        given["base_url"] = choice.base_url
    if choice.input_price or choice.output_price:
        given["price"] = {"input": choice.input_price, "output": choice.output_price}
    if choice.roles_file is None:
        return {"default": {"model": choice.model, **given}}
    if choice.model != SIMILARITY:
        raise UsageError(
            f"got the model {choice.model} beside --models {choice.roles_file}; name it in the file's table [default]"
        )
    return _with_options(_read_file(choice.roles_file), given, choice.roles_file)


def _read_file(file: Path) -> dict[str, dict[str, Any]]:
    try:
        return read_toml(file)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read {file}: {error}; give a TOML file with a table for each role, "
            "[default] with model and base_url first"
        ) from error


def _with_options(
    settings: dict[str, dict[str, Any]], given: Mapping[str, Any], file: Path
) -> dict[str, dict[str, Any]]:
    """Give each role what the options say and the file does not; raise for an option that no role takes."""
    shared = settings.get("default")
    common = shared if isinstance(shared, dict) else {}
    tables = [each for each in settings.values() if isinstance(each, dict)]  # what is none, `read_roles` refuses
    tables = [each for each in tables if not str({**common, **each}.get("model")).startswith(LOCAL)]
    for name, value in given.items():
        takers = [each for each in tables if name not in {**common, **each}]
        if tables and not takers and name != "at_once":  # that one has a value where nobody gave it
            option = "--base-url" if name == "base_url" else "--input-price or --output-price"
            raise UsageError(f"got {option}, and every role in {file} has its own {name}; leave one of them out")
        for each in takers:
            each[name] = value
    return settings


def hub_for(model: str) -> AbstractContextManager[bool]:
    """Context to load a model in: for a model of a hub, requests that fail fall back to its cache quickly."""
    from kinodex.index.spaces.quick_hub import quick_hub

    return nullcontext(False) if Path(model).expanduser().is_dir() else quick_hub()
