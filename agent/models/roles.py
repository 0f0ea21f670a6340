"""Settings of the language models: the endpoint and model of each role, its parameters and its prices."""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
)

from kinodex.agent.errors import BadSettings, KeyMissing
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.frames import Detail

DEFAULT_ROLE = "default"
ROLES = (DEFAULT_ROLE, "policy", "reward", "vision", "grounding", "captioner", "judge")
NO_KEY = "no-key"
OPENAI_URL = "https://api.openai.com/v1"
PRICED_TOKENS = 1_000_000


class Price(BaseModel):
    """Money for a million tokens, in whatever currency the user counts; 0 by default.

    Prices are the user's to give for each role: none are built in, since they change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: NonNegativeFloat = 0.0
    output: NonNegativeFloat = 0.0
    cached_input: NonNegativeFloat | None = None
    """For input tokens that the server had cached; None: the same as `input`."""

    def usage(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> Usage:
        """Add up the tokens and their cost; `cached_tokens` are part of `input_tokens`."""
        cached = min(cached_tokens, input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        cost = (input_tokens - cached) * self.input + cached * cached_price + output_tokens * self.output
        return Usage(input_tokens, output_tokens, cached, cost / PRICED_TOKENS)


def default_base_url() -> str:
    """Return the endpoint where none is named.

    It is that of OPENAI_BASE_URL, as the official client has it, else OpenAI's.
    """
    return os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL


class Role(BaseModel):
    """One model behind one OpenAI-compatible endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    base_url: str = Field(default_factory=default_base_url, validate_default=True)
    """That of OPENAI_BASE_URL, else OpenAI's."""
    key_env: str | None = "OPENAI_API_KEY"
    """Environment variable that holds the key; None: the endpoint needs none."""
    temperature: NonNegativeFloat | None = None
    """None: the temperature of each kind of request."""
    max_tokens: PositiveInt = 4096
    reasoning: bool = True
    """If a reply begins with its reasons, in a short field; models that think before they write do without."""
    context_tokens: PositiveInt | None = None
    """The tokens of a request and its reply that the model can hold; None: as the server says, when it matters."""
    seed: int | None = None
    extra: dict[str, JsonValue] = {}
    """Further body fields, sent as they are (`{"reasoning_effort": "low"}`)."""
    image_side_px: PositiveInt = 512
    """Frames with a longer side are scaled down to it before they are sent."""
    detail: Detail = "auto"
    """The resolution at which the server reads frames, where neither the frame nor the request says it."""
    images: NonNegativeInt | None = None
    """The most pictures that the server takes in a request; None: found out at its first refusal. More frames are shown
    as contact sheets."""
    price: Price = Price()
    at_once: PositiveInt = 8
    """Requests in flight at the same time, at most: fewer while the server answers no more together (`slots`)."""
    timeout_s: PositiveFloat = 600.0
    """For one attempt, as the openai client has it; after a time-out there is another one with twice the time."""
    attempts: PositiveInt = 5
    give_up_after_s: PositiveFloat = 300.0
    """No attempt begins later than this after the first, but for the one after a time-out."""

    @field_validator("base_url")
    @classmethod
    def _http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # above 65535 it raises
            raise ValueError("must look like http://HOST:PORT/v1 or https://HOST/v1")
        return value.rstrip("/")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def secrets(self) -> frozenset[str]:
        """Values that grant access to the endpoint, as a server may quote them: of the key, the user and the query."""
        parts = urlsplit(self.base_url)
        login = parts.netloc.rpartition("@")[0]
        words = [login, *login.split(":", 1), *(value for _, value in parse_qsl(parts.query))]
        encoded = base64.b64encode(unquote(login).encode()).decode()
        key = os.environ.get(self.key_env or "", "").strip()
        return frozenset({*words, *map(unquote, words), encoded, key} - {""})

    @property
    def place(self) -> str:
        """The endpoint's URL for people and logs: without a user, a password or a query, which may hold a key."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def read_roles(settings: Mapping[str, Mapping[str, object]]) -> dict[str, Role]:
    """Roles by name, one of `ROLES`; each takes the settings that it leaves out from "default".

    Raises `BadSettings` with the first role or field that is invalid.
    """
    for name, values in settings.items():
        if name not in ROLES or not isinstance(values, Mapping):
            allowed = f"the roles are {', '.join(ROLES)}, each with fields such as model and base_url"
            raise BadSettings(f"got {name!r} in the settings of roles; {allowed}")
    shared = settings.get(DEFAULT_ROLE, {})
    roles = {}
    for name, values in settings.items():
        try:
            roles[name] = Role.model_validate({**shared, **values})
        except ValidationError as error:
            source = "" if "base_url" in {**shared, **values} else "; base_url is that of OPENAI_BASE_URL"
            where = source if error.errors()[0]["loc"] == ("base_url",) else ""
            raise BadSettings(f"role {name!r}, {_first_misfit(error)}{where}") from error
    return roles


def _first_misfit(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] in ("missing", "extra_forbidden"):
        return f"{field}: {first['msg']}; the fields are {', '.join(Role.model_fields)}"
    got = first["input"]
    if field == "base_url" and isinstance(got, str):
        got = got.rpartition("@")[2]  # what stands before it may be a password, and an address that is none hides it
    return f"{field}: got {got!r}; {first['msg'].removeprefix('Value error, ')}"


def api_key(role: Role) -> str:
    """Return the role's key from the environment; a placeholder for endpoints that need none.

    Raises `KeyMissing` if the variable is not set and the endpoint is neither on this machine nor on a
    private network.
    """
    if role.key_env is None:
        return NO_KEY
    key = os.environ.get(role.key_env, "").strip()
    if key:
        return key
    if is_private(role.host):
        return NO_KEY
    raise KeyMissing(
        f"no key for {role.host}: the environment variable {role.key_env} is not set; set it, "
        "name another one as the role's key_env, or point base_url at a local server"
    )


def is_private(host: str) -> bool:
    """Return True for a server of one's own: loopback, a private address, or a bare name as container networks use."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_loopback or address.is_private
