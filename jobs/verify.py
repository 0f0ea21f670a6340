"""A vision-language model looks at the moments that a search found, and says if what is sought is there. `--verify`.

Several moments are one request: some frames of each, and what is said and written meanwhile. A verdict is kept beside
the replies of models, by model, text and moment, and paid for once. A reply that cannot be used twice is no error: its
moments stay as the search left them, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol, TypeVar

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.errors import TakesNoPictures
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.models.response_cache import ResponseCache, cache_key
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.exchange import Model, Models, Usage, model_for
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.requests.judge_moments import FoundMoment, JudgeMoments, MomentVerdicts
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Hit
from kinodex.jobs.costs import Forecast, of_requests, sight_tries
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.library import batched, notes_between, shown_between
from kinodex.jobs.models import ModelChoice, cache_file, endpoint_roles, role_models, run_now

FRAMES_A_MOMENT = 3
MOMENTS_A_REQUEST = 8
"""Of the default three frames each, as many pictures as servers of open models usually take at once."""
LINES_A_MOMENT = 12
MOST = 50
"""Moments that one search has looked at."""

Found = TypeVar("Found", Hit, Moment)


@dataclass(frozen=True, slots=True)
class Span:
    """The moment `[start_s, end_s)` of a video."""

    video_id: str
    start_s: float
    end_s: float

    @classmethod
    def of(cls, found: Hit | Moment) -> Span:
        if isinstance(found, Hit):
            return cls(found.video_id, found.time_s, found.end_s)
        return cls(found.video.video_id, found.start_s, found.end_s)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no for a `reason`; None where no reply could be used, and the reason says why."""

    present: bool | None
    reason: str


@dataclass(slots=True)
class Looked:
    """Verdicts in the order of the moments; what the calls cost, and how many replies could not be used."""

    verdicts: list[Verdict]
    calls: int = 0
    invalid: int = 0
    usage: Usage = field(default_factory=Usage)


class Look(Protocol):
    """Has a model look at the first moments that a search found, as `verified` does with a model of its own."""

    def __call__(
        self, library: LibraryReader, text: str, found: Sequence[Found], count: int
    ) -> tuple[list[Found], Looked]: ...


def looking_role(choice: ModelChoice) -> Role:
    """The settings of the model that looks; raises UsageError for a choice of models none of which sees pictures."""
    roles = endpoint_roles(choice)
    role = roles.get(JudgeMoments.role, roles.get("default"))
    if role is None:
        got = choice.roles_file or f"the model {choice.model}"
        raise UsageError(
            f"got {got} to look at moments, which has no model that sees; name a vision-language model behind an "
            f"endpoint with --model and --base-url, or as [{JudgeMoments.role}] with --models"
        )
    return role


def verified(
    library: LibraryReader, text: str, found: Sequence[Found], count: int, models: ModelChoice | Models
) -> tuple[list[Found], Looked]:
    """Have a model look at the first `count` moments; those with a verdict have the basis "verified".

    Raises UsageError for a model that cannot look, and a ModelError for one that gives no reply at all.
    """
    if not text.strip():
        raise UsageError("got no words to look for in the moments; give a text, not a picture alone")
    if not 1 <= count <= MOST:
        raise UsageError(f"got {count} moments to look at; give a number from 1 to {MOST}")
    if isinstance(models, ModelChoice):
        looking_role(models)
    spans = [Span.of(each) for each in found[:count]]
    looked = run_now(_opened(library, text, spans, models)) if spans else Looked([])
    judged = list(found)
    for at, verdict in enumerate(looked.verdicts):
        judged[at] = _judged(judged[at], verdict)
    return judged, looked


def _judged(found: Found, verdict: Verdict) -> Found:
    basis = found.basis if verdict.present is None else "verified"
    return replace(found, basis=basis, present=verdict.present, reason=verdict.reason)


async def _opened(library: LibraryReader, text: str, spans: Sequence[Span], models: ModelChoice | Models) -> Looked:
    if not isinstance(models, ModelChoice):
        return await look(library, text, spans, models)
    with opened_verdicts(models, text) as kept:
        async with role_models(models) as opened:
            return await look(library, text, spans, opened, kept)


async def look(
    library: LibraryReader, text: str, spans: Sequence[Span], models: Models, verdicts: KeptVerdicts | None = None
) -> Looked:
    """Have the model of the role "vision" look at moments, but for those on which verdicts are kept."""
    model = model_for(models, JudgeMoments.role)
    if model is None:
        raise UsageError("got no model for the role vision, which looks at moments; name one, or a default")
    kept = {} if verdicts is None else verdicts.of(spans)
    requests = requests_for(library, text, spans, [at for at in range(len(spans)) if at not in kept])
    looked, made = Looked([]), dict[int, Verdict]()
    if any(request.frames for request in requests):
        looked.usage += await _check_sight(model)
    outcomes = await gather_all([ask_checked(model, request) for request in requests])
    for request, outcome in zip(requests, outcomes, strict=True):
        looked.calls += outcome.calls
        looked.invalid += outcome.invalid
        looked.usage += outcome.usage
        made |= _verdicts(request, outcome)
    if verdicts is not None:
        verdicts.keep(spans, made)
    looked.verdicts = [(kept | made)[at] for at in range(len(spans))]
    return looked


# Requests: frames and lines of several moments, with the number of each among all.


def requests_for(library: LibraryReader, text: str, spans: Sequence[Span], places: Sequence[int]) -> list[JudgeMoments]:
    """Make the requests that show a model the moments at these places of a list; a moment's number is its place + 1."""
    return [_request(library, text, [(at, spans[at]) for at in some]) for some in batched(places, MOMENTS_A_REQUEST)]


def _request(library: LibraryReader, text: str, numbered: Sequence[tuple[int, Span]]) -> JudgeMoments:
    frames: dict[tuple[str, int], ShownFrame] = {}
    notes: dict[Note, None] = {}
    moments = []
    for at, span in numbered:
        labels = []
        for shown in _frames(library, span):
            known = frames.setdefault((shown.video_id, shown.frame_no), replace(shown, label=len(frames) + 1))
            labels.append(known.label)
        notes |= dict.fromkeys(lines_in(library, span, captions=not labels))
        moments.append(FoundMoment(at + 1, span.video_id, span.start_s, span.end_s, tuple(labels)))
    return JudgeMoments(
        sought=_one_line(text), moments=tuple(moments), frames=tuple(frames.values()), notes=tuple(notes)
    )


def _frames(library: LibraryReader, span: Span) -> list[ShownFrame]:
    video = library.video(span.video_id)
    if not video.frames:
        return []
    (shown,) = shown_between(library, video, [(span.start_s, span.end_s)], FRAMES_A_MOMENT)
    return list(shown)


def lines_in(library: LibraryReader, span: Span, *, captions: bool = True) -> list[Note]:
    """The first lines of a moment, of each kind in turn: see `notes_between`."""
    return notes_between(library, span.video_id, span.start_s, span.end_s, captions=captions)[:LINES_A_MOMENT]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def forecast_verdicts(
    library: LibraryReader, text: str, found: Sequence[Hit | Moment], count: int, choice: ModelChoice
) -> Forecast:
    """The costs of having a model look at the first `count` moments; raises as `verified` does before it asks."""
    role = looking_role(choice)
    spans = [Span.of(each) for each in found[:count]]
    with opened_verdicts(choice, text) as verdicts:
        kept = {} if verdicts is None else verdicts.of(spans)
    places = [at for at in range(len(spans)) if at not in kept]
    requests = requests_for(library, text, spans, places)
    forecast = of_requests("verify", requests, role, len(places))
    return replace(forecast, tries=sight_tries(choice, needs_pictures=forecast.frames > 0))


# Replies.


def _verdicts(request: JudgeMoments, outcome: Outcome[MomentVerdicts]) -> dict[int, Verdict]:
    """Verdicts by place, one for each moment of a request."""
    found = [] if outcome.given is None else outcome.given.moments
    judged = {each.moment: Verdict(each.present, _one_line(each.reasoning)) for each in found}
    fault = outcome.complaint or "the reply left it out"
    none = Verdict(None, f"no verdict: the model's reply could not be used ({fault})")
    return {each.number - 1: judged.get(each.number, none) for each in request.moments}


async def _check_sight(model: Model) -> Usage:
    """The cost of finding out that a model sees; raises TakesNoPictures for one that does not."""
    check = getattr(model, "check_sight", None)
    problem, usage = (None, None) if check is None else await check()
    if problem is not None:
        raise TakesNoPictures(
            f"{problem.what}, and is to look at moments",
            "name a model with vision (or set images for its role, if it does see), or search without --verify",
        )
    return usage or Usage()


# Verdicts that are kept beside the replies of models.


@dataclass(frozen=True, slots=True)
class KeptVerdicts:
    """The verdicts of a model on what is sought."""

    cache: ResponseCache
    role: Role
    sought: str

    def of(self, spans: Sequence[Span]) -> dict[int, Verdict]:
        """The verdicts that are kept on moments, by their places."""
        stored = {at: self.cache.get(self._key(span)) for at, span in enumerate(spans)}
        return {
            at: Verdict(bool(each.get("present")), str(each.get("reason")))
            for at, each in stored.items()
            if each is not None
        }

    def keep(self, spans: Sequence[Span], made: Mapping[int, Verdict]) -> None:
        """Keep new ones by their places; a moment without a verdict is looked at again."""
        for at, verdict in made.items():
            if verdict.present is not None:
                self.cache.put(self._key(spans[at]), asdict(verdict))

    def _key(self, span: Span) -> str:
        asked = {"sought": self.sought, "model": self.role.model, "base_url": self.role.base_url}
        return cache_key({"kind": "verdict", "frames": FRAMES_A_MOMENT, **asked, **asdict(span)})


@contextmanager
def opened_verdicts(choice: ModelChoice, text: str) -> Iterator[KeptVerdicts | None]:
    """Open the verdicts that are kept of the model that looks; None without a cache."""
    role = looking_role(choice)
    if not choice.cache:
        yield None
        return
    with ResponseCache(choice.cache_path or cache_file()) as cache:
        yield KeptVerdicts(cache, role, _one_line(text))
