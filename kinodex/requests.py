"""Requests: what a user can ask of a library, each verb declared once.

    Find(query="a red boat", in_="frames", where="camera = 'front'", k=3)
    Ask(question="What colour is the boat?", options=("red", "blue"), budget=Budget(frames=16))

The desk carries them out (`kinodex.desk`). The command line, HTTP, MCP, the OpenAI endpoint and the reference page
(docs/requests.md) are made from these models, so a new field with its `Flag` is in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.question import MAX_OPTIONS, Earlier
from kinodex.index.errors import QueryError
from kinodex.index.flags import Flag, flag_of
from kinodex.index.kinds import ALL, places_help
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError

LONGEST_TEXT, LONGEST_QUESTION, MOST_VIDEOS = 2_000, 20_000, 1_000
"""Characters of a text that is searched and of a question, and videos of a request."""
MOST_HITS, MOST_RANGES, MOST_VERIFIED = 10_000, 1_000, 1_000
R = TypeVar("R", bound="Request")


def _at_most(limit: int, what: str) -> AfterValidator:
    """Refuse what is longer. JSON schemas do not repeat it: an assistant reads them in every conversation."""

    def check(value: Any) -> Any:
        if value is not None and len(value) > limit:
            raise ValueError(f"got {len(value):,} {what}; give at most {limit:,}")
        return value

    return AfterValidator(check)


def _read_time(value: Any) -> Any:
    try:
        return parse_time(value) if isinstance(value, str) else value
    except QueryError as error:
        raise ValueError(str(error)) from error  # which pydantic names the field of


def _read_plan(value: Any) -> Any:
    if not isinstance(value, str | Path):
        return value
    from kinodex.jobs.collection.plan import read_plan

    return read_plan(Path(value))


Text = Annotated[str, _at_most(LONGEST_TEXT, "characters")]
Condition = Annotated[str, _at_most(LONGEST_TEXT, "characters")]
Seconds = Annotated[float, BeforeValidator(_read_time)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Scalar = str | Whole | float | bool


class Request(BaseModel):
    """A request: frozen, with no other fields than its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_by_name=True)


class Films(Request):
    """Requests about some videos of a library: those named, of which a condition holds."""

    videos: Annotated[
        tuple[str, ...],
        _at_most(MOST_VIDEOS, "videos"),
        Flag("Only these videos: id or its first digits, title or a part of it, file, or glob.",
             "--video"),
    ] = ()  # fmt: skip
    where: Annotated[
        Condition | None,
        Flag("Only videos for which this SQL holds: \"camera = 'front'\".", metavar="CONDITION"),
    ] = None


class Scope(Films):
    """Requests about a part of some videos: the times in `[start_s, end_s)`."""

    start_s: Annotated[
        Seconds | None, Flag("From this time on: 90.5 or 1:30.5.", "--from", "TIME", parse=parse_time)
    ] = None
    end_s: Annotated[Seconds | None, Flag("Before this time.", "--to", "TIME", parse=parse_time)] = None


class Find(Scope):
    """Find the moments that fit words, a picture or both best."""

    query: Annotated[Text, Flag("What to look for, in words.", is_argument=True)] = ""
    in_: Annotated[str, Flag(f"Where to look: {places_help()}.", "--in")] = Field(
        default=ALL, validation_alias="in", serialization_alias="in"
    )
    like: Annotated[str | None, Flag("Also like this stored frame.", metavar="VIDEO@SECONDS")] = None
    k: Annotated[int, Flag("Number of hits.", "-k")] = Field(default=10, ge=1, le=MOST_HITS)
    min_gap_s: Annotated[float, Flag("Least seconds between hits of one video.", "--min-gap")] = Field(
        default=2.0, ge=0
    )
    min_score: Annotated[float, Flag("Least score of a detection.")] = Field(default=0.0, ge=0, le=1)
    rerank: Annotated[
        str | None,
        Flag("Order hits by their words, by the reranker at http://HOST:PORT/rerank.", metavar="URL", is_local=True),
    ] = None
    verify: Annotated[
        int, Flag("Have a model look at the first K: yes or no, with its reason.", metavar="K")
    ] = Field(default=0, ge=0, le=MOST_VERIFIED)  # fmt: skip


class Ground(Films):
    """Find the ranges of time that fit a text best, by a search or by an agent."""

    text: Annotated[Text, Flag('What happens, in words: "the goal is scored".', is_argument=True)]
    in_: Annotated[str, Flag("Where to look: frames, words (lines of all kinds), or all.", "--in")] = Field(
        default=ALL, validation_alias="in", serialization_alias="in"
    )
    k: Annotated[int, Flag("Number of ranges.", "-k")] = Field(default=5, ge=1, le=MOST_RANGES)
    agent: Annotated[str | None, Flag("Ask this agent, and give the evidence of its answer: a name, or FILE.py.")] = (
        None
    )
    budget: Annotated[Budget, Flag("Limits of the agent.")] = Budget()
    verify: Annotated[
        int, Flag("Have a model look at the first K: yes or no, with its reason.", metavar="K")
    ] = Field(default=0, ge=0, le=MOST_VERIFIED)  # fmt: skip
    pad_s: Annotated[float, Flag("Seconds to add before and after each.", "--pad")] = Field(default=0.0, ge=0)
    join_s: Annotated[
        float | None, Flag("Make one of those at most this many seconds apart; 0: that touch; -1: none.", "--join")
    ] = None
    snap: Annotated[bool, Flag("End at cuts: padding shows no other shot.")] = False


class Ask(Films):
    """Have an agent answer a question about videos, with the ranges of its evidence."""

    question: Annotated[
        str, _at_most(LONGEST_QUESTION, "characters"), Flag("The question, in words.", is_argument=True)
    ]
    options: Annotated[
        tuple[str, ...],
        _at_most(MAX_OPTIONS, "options"),
        Flag("The choices, 2 to 26, one of which is the answer.", "--option"),
    ] = ()
    agent: Annotated[
        str | None,
        Flag("The agent, by name; all: each film by itself, for which and how many."),
    ] = None
    settings: Annotated[Mapping[str, Scalar], Flag("Parameters of the agent.", "--set", "NAME=VALUE")] = {}
    budget: Annotated[Budget, Flag("Limits; what is left out has none.")] = Budget()
    rules: Annotated[AnswerRules, Flag("How the run may end.")] = USUAL
    follow_up: Annotated[
        str | None, Flag("Start with what an earlier question saw: its trace, or its key.", metavar="TRACE")
    ] = None
    plan: Annotated[
        Mapping[str, Any] | None,
        BeforeValidator(_read_plan),
        Flag(
            "With the agent all: this plan, as an answer has it.",
            metavar="FILE.json",
            is_rare=True,
            is_local=True,
            parse=_read_plan,
        ),
    ] = None
    earlier: tuple[Earlier, ...] = ()
    """What was asked and answered before in the same conversation; chat programs send it in their messages."""


VERBS: Mapping[str, type[Request]] = {"search": Find, "ground": Ground, "ask": Ask}
"""Requests by the name that every face gives their verb."""


def flags(request: type[Request], *, remote: bool = False) -> Iterator[tuple[str, FieldInfo, Flag]]:
    """Iterate over the fields of a request that have a flag, arguments first; `remote`: those for clients of a server.

    >>> [name for name, _, _ in flags(Ground)][:3]
    ['text', 'videos', 'where']
    """
    found = [(name, field, flag_of(field.metadata)) for name, field in request.model_fields.items()]
    offered = [(name, field, flag) for name, field, flag in found if flag and not (remote and flag.is_local)]
    yield from sorted(offered, key=lambda each: not each[2].is_argument)


def schema_of(request: type[Request]) -> dict[str, Any]:
    """Return the JSON schema of a request as clients of a server send it, with the help of each field.

    >>> schema_of(Find)["properties"]["k"]["description"]
    'Number of hits.'
    """
    schema = request.model_json_schema(by_alias=True)
    helps = {outside(name): flag.help for name, _, flag in flags(request, remote=True)}
    properties = {name: schema["properties"][name] | {"description": help_} for name, help_ in helps.items()}
    return schema | {"properties": properties}


def outside(name: str) -> str:
    """Return the name by which users know a field: `in_` is `in`, which Python keeps for itself."""
    return name.rstrip("_")


def made(request: type[R], values: Mapping[str, Any], spellings: Mapping[str, str] = MappingProxyType({})) -> R:
    """Make a request of plain values; raises UsageError that names the first field that does not fit.

    `spellings` are the names that the caller gives fields, such as "--from" for `start_s`.

    >>> made(Find, {"query": "a boat", "k": 3}).k
    3
    """
    try:
        return request.model_validate(values)
    except ValidationError as error:
        raise UsageError(fault_of(error, request, spellings)) from error


def _fault(error: ValidationError) -> tuple[ErrorDetails, tuple[int | str, ...]]:
    """Return the error of a request that says most, and its place.

    Where a value may be of several kinds, the error is of the kind that the value has.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    if len(first["loc"]) < 3:
        return first, first["loc"]
    place = first["loc"][:-1]
    of_place = [each for each in errors if each["loc"][:-1] == place]
    return next((each for each in of_place if not each["type"].endswith("_type")), first), place


def fault_of(
    error: ValidationError, request: type[BaseModel], spellings: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Say in one line which field of a request does not fit, and why."""
    first, place = _fault(error)
    name = ".".join(map(str, place)) or "the request"
    name = spellings.get(name, name)
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        taken = ", ".join(outside(name) for name in request.model_fields)
        return f"got {name}, which is not taken here; give some of {taken}"
    if first["type"] == "missing":
        return f"got no {name}; give one"
    why = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{name}: {why}" if why.startswith("got ") else f"got {name}={first['input']!r:.60}; it {why}"
