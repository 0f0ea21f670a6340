"""A vision-language model looks at the moments that a search found, and says if what is sought is there. `--verify`.

Several moments are one request: some frames of each, and what is said and written meanwhile. A verdict is kept in the
library by model, text and moment, and paid for once. A reply that cannot be used twice is no error: its moments stay as
the search left them, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from kinodex.agent.errors import TakesNoPictures
from kinodex.agent.limits import gather_all
from kinodex.agent.protocol import Model, Models, Note, ShownFrame, Usage, model_for
from kinodex.agent.requests.describe import FoundMoment, JudgeMoments, MomentVerdict
from kinodex.index.errors import LibraryBusy, StorageError, StorageFull
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Hit, NoteRow, part_name
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.library import batched, notes_between, shown_between
from kinodex.jobs.models import ModelChoice, endpoint_roles, role_models, run_now

if TYPE_CHECKING:
    from kinodex.agent.models.roles import Role

FRAMES_A_MOMENT = 3
MOMENTS_A_REQUEST = 8
"""Of the default three frames each, as many pictures as servers of open models usually take at once."""
LINES_A_MOMENT = 12
ATTEMPTS = 2
MOST = 50
"""Moments that one search has looked at."""
KEPT_AS = "verify:{}"
"""The model of a kept verdict, which no captioner is called."""

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
    async with role_models(models) as opened:
        return await look(library, text, spans, opened, keep=models.cache)


async def look(
    library: LibraryReader, text: str, spans: Sequence[Span], models: Models, *, keep: bool = True
) -> Looked:
    """Have the model of the role "vision" look at moments, but for those that it judged before.

    Without `keep` verdicts in the library are neither used nor added to.
    """
    model = model_for(models, JudgeMoments.role)
    if model is None:
        raise UsageError("got no model for the role vision, which looks at moments; name one, or a default")
    kept = kept_verdicts(library, text, spans, model.name) if keep else {}
    requests = requests_for(library, text, spans, [at for at in range(len(spans)) if at not in kept])
    looked, made = Looked([]), dict[int, Verdict]()
    if any(request.frames for request in requests):
        looked.usage += await _check_sight(model)
    for calls, invalid, usage, verdicts in await gather_all([_ask(model, request) for request in requests]):
        looked.calls += calls
        looked.invalid += invalid
        looked.usage += usage
        made |= verdicts
    if keep:
        _keep(library, text, spans, model.name, made)
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


# Replies: what could not be used, or was left out, is asked for once more.


async def _ask(model: Model, request: JudgeMoments) -> tuple[int, int, Usage, dict[int, Verdict]]:
    """Calls, invalid replies, usage, and verdicts by place, one for each moment of a request."""
    usage, invalid, fault = Usage(), 0, "the reply left it out"
    found: dict[int, MomentVerdict] = {}
    left = request
    for attempt in range(ATTEMPTS):
        exchange = await model.ask(left)
        usage += exchange.usage
        if exchange.reply is None:
            invalid, fault = invalid + 1, exchange.invalid or "it makes no sense"
            left = replace(left, attempt=attempt + 1, complaint=fault, bad_reply=exchange.raw)
            continue
        found |= {each.moment: each for each in exchange.reply.moments}
        missing = tuple(each for each in request.moments if each.number not in found)
        left = replace(left, moments=missing, attempt=attempt + 1, complaint="", bad_reply="")
        if not missing:
            break
    none = Verdict(None, f"no verdict: the model's reply could not be used ({fault})")
    judged = {number: Verdict(each.present, _one_line(each.reasoning)) for number, each in found.items()}
    return attempt + 1, invalid, usage, {m.number - 1: judged.get(m.number, none) for m in request.moments}


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


# Verdicts that the library keeps, beside the captions of parts of videos.


def kept_verdicts(library: LibraryReader, text: str, spans: Sequence[Span], model: str) -> dict[int, Verdict]:
    """The verdicts of a model on a text that the library holds, by the place of their moment."""
    sought, name = _one_line(text), KEPT_AS.format(model)
    rows = {
        (row.video_id, part_name(row.start_s, row.end_s)): row
        for video_id in {span.video_id for span in spans}
        for row in library.notes.read(video_id, name)
        if row.sought == sought
    }
    found = {at: rows.get((each.video_id, part_name(each.start_s, each.end_s))) for at, each in enumerate(spans)}
    return {at: Verdict(row.confidence == 1.0, row.text) for at, row in found.items() if row is not None}


def _keep(library: LibraryReader, text: str, spans: Sequence[Span], model: str, made: dict[int, Verdict]) -> None:
    name = KEPT_AS.format(model)
    rows = [
        NoteRow(video_id, name, start_s, end_s, each.reason, float(each.present), FRAMES_A_MOMENT, _one_line(text))
        for at, each in made.items()
        for video_id, start_s, end_s in [astuple(spans[at])]
        if each.present is not None
    ]
    with suppress(LibraryBusy, StorageError, StorageFull):  # the verdicts are there, though they are not kept
        library.notes.add(rows)
