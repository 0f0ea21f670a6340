"""Ask an agent one question; find agents by name or in plugins, and check answers by the gate."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.answer import Answer, Shown, cited_items
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.budget import UNLIMITED, Budget
from kinodex.agent.environment import Environment
from kinodex.agent.errors import (
    AllRejected,
    BadAnswer,
    BadSettings,
    ModelRejected,
    NeedsLanguage,
    NeedsPictures,
    NoUsableReply,
    OutOfBudget,
    TakesNoPictures,
    UnknownAgent,
)
from kinodex.agent.limits import Account, Ledger, StopSignal, time_limit
from kinodex.agent.protocol import Models, Note, Question, ShownFrame, model_for, request_key
from kinodex.agent.requests.answer import Answered, Conclusion
from kinodex.agent.requests.describe import Verify, VerifyNotes
from kinodex.agent.session import Session, answer_text
from kinodex.agent.trace import Acted, Event, Finished, PriorEvidence, RunStarted, record
from kinodex.agent.variants.base import Variant, with_settings
from kinodex.agent.variants.baselines import BLIND, CHANCE, UNIFORM
from kinodex.agent.variants.eea import EEA
from kinodex.agent.variants.kino import KINO
from kinodex.agent.variants.longvideoagent import LONGVIDEOAGENT
from kinodex.agent.variants.vca import VCA
from kinodex.agent.variants.videoagent import VIDEOAGENT
from kinodex.agent.variants.videoagent2 import VIDEOAGENT2
from kinodex.agent.variants.videoseek import VIDEOSEEK
from kinodex.agent.variants.videotree import VIDEOTREE
from kinodex.index.named_files import read_text

ANSWER = TypeAdapter(Answer)
HANG_S = 600.0
"""Time without a call in flight or anything computed after which an agent is taken to hang."""


def default_parameters(agent: str | Variant, environment: Environment) -> Any:
    """Default parameters of an agent; some depend on the longest video."""
    return find_variant(agent).parameters(max((video.duration_s for video in environment.videos), default=0.0))


async def ask(
    question: Question | str,
    environment: Environment,
    models: Models,
    *,
    agent: str | Variant = "kino",
    parameters: Any = None,
    budget: Budget = UNLIMITED,
    rules: AnswerRules = USUAL,
    seen: PriorEvidence | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: StopSignal | None = None,
) -> Answer:
    """Answer a question about the environment's videos; `on_event` receives every event as it happens.

    `agent` is a name, a `Variant`, or a spec as `find_variant` takes it; `parameters` are of its own class,
    or a mapping of those that are not the default. `question` without options may be a text.
    `rules` say whether, and when, a model may find the evidence insufficient, and if answers have to be verified.
    A follow-up question, one with evidence `seen` before, is first tried on that alone.
    `stop` ends it from any thread, as a spent budget does.

    Raises `ModelError` if a model cannot be reached (`TakesNoPictures` before any call of an agent that looks at
    frames), `NeedsLanguage` if the agent needs one with language, `NeedsPictures` if it needs frames and a video has
    none, `BadAnswer` if it returns anything but an answer, or hangs. Of all of these `spent_until` is the bill.
    Bad replies and spent budgets do not raise: they are the answer's status.
    """
    chosen = find_variant(agent)
    parameters = _fitting(chosen, parameters, environment)
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    policy = model_for(models, "policy")
    check_fit(chosen, has_language=policy is None or getattr(policy, "has_language", True), unpictured=unpictured)
    if not environment.videos:
        raise BadSettings("there is no video to ask about; ingest one, or name one that the library holds")
    limit = parameters.rounds if budget.rounds is None else min(budget.rounds, parameters.rounds)
    budget = replace(budget, rounds=limit)
    question = Question(question) if isinstance(question, str) else question
    question = question if seen is None else replace(question, earlier=seen.earlier)
    on_event = _in_words(chosen, on_event)
    session = Session(question, environment, models, budget, on_event, rules, stop)
    if seen is not None and chosen.sees_video:
        session.prior_frames, session.prior_notes = seen.frames, seen.notes
    library = environment.videos, environment.space, environment.index_frames
    on_event(RunStarted(question, chosen.name, asdict(parameters), budget, *library, _names(models), rules))
    try:
        if chosen.needs_pictures:
            await session.account.clock.count(_check_sight(session.account, chosen, models))
        answer = await session.account.clock.count(_answered(session, chosen, parameters))
        answer = validate_answer(answer, question, environment)
        if chosen.sees_video and (noise := environment.source.noise()):
            answer = replace(answer, noise=noise)
    except Exception as error:
        error.__dict__["ledger"] = session.account.ledger  # the calls until then were paid all the same
        raise
    on_event(Finished(answer))
    return answer


def _in_words(chosen: Variant, on_event: Callable[[Event], None]) -> Callable[[Event], None]:
    """Give the steps of a plugin the words that it brings: who reads its trace later does not run its code."""
    if chosen in VARIANTS or not chosen.words:
        return on_event

    def emit(event: Event) -> None:
        if isinstance(event, Acted) and (words := chosen.words.get(event.action)):
            event = replace(event, words=words(record(event)))
        on_event(event)

    return emit


async def _check_sight(account: Account, chosen: Variant, models: Models) -> None:
    """Refuse an agent that looks at frames before its first call, if none of its models takes pictures."""
    problem = None
    for model in {id(each): each for role in chosen.roles if (each := model_for(models, role))}.values():
        check = getattr(model, "check_sight", None)
        began = time.perf_counter()
        problem, usage = (None, None) if check is None else await check()
        if usage is not None:
            account.charge(usage, cached=False, invalid=False, seconds=time.perf_counter() - began)
        if problem is None:
            return
    if problem is not None:
        captioned = [each.name for each in VARIANTS if {*each.roles} == {"policy", "captioner"}]
        raise TakesNoPictures(
            f"{problem.what}, and the agent {chosen.name} looks at frames",
            "name a model with vision (or set images for its role, if it does see), or choose an agent that works from "
            f"captions, of which the captioner alone has to see: {', '.join(captioned)}",
        )


def spent_until(error: BaseException) -> Ledger:
    ledger = getattr(error, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else Ledger()


async def _answered(session: Session, chosen: Variant, parameters: Any) -> Answer:
    gate = Gate(session) if session.rules.verify else None
    try:
        async with time_limit(lambda: HANG_S - session.account.idle_s) as hang:
            try:
                answer = await session.recall() or await chosen.run(session, parameters)
            except OutOfBudget as over:
                answer = await session.best_so_far(over=str(over))
            except NoUsableReply as end:
                answer = await session.best_so_far(reason=str(end))
    except TimeoutError as error:
        if not hang.expired():
            raise
        raise BadAnswer(
            f"the agent {chosen.name!r} waited for {HANG_S:g} s for something that is no call of a model; "
            "let it ask through its session"
        ) from error
    return await gate.mark(answer) if gate else answer


def _fitting(chosen: Variant, parameters: Any, environment: Environment) -> Any:
    defaults = default_parameters(chosen, environment)
    if parameters is None or isinstance(parameters, Mapping):
        return with_settings(defaults, parameters or {})
    if type(parameters) is not type(defaults):
        raise BadSettings(
            f"{type(parameters).__name__} are not parameters of the agent {chosen.name!r}; "
            "leave them out for the defaults"
        )
    return parameters


def _names(models: Models) -> Mapping[str, str]:
    if isinstance(models, Mapping):
        return {role: model.name for role, model in models.items()}
    return {"default": models.name}


def validate_answer(answer: object, question: Question, environment: Environment) -> Answer:
    """Return an agent's answer if it is one to a question about the environment's videos.

    Raises `BadAnswer` with the fault: stored as it is, such an answer could not be read again.
    """
    fault = f"{type(answer).__name__} instead of an Answer"
    if isinstance(answer, Answer):
        try:
            read: Answer = ANSWER.validate_python(asdict(answer))
        except ValidationError as error:
            first = error.errors()[0]
            fault = f"{'.'.join(map(str, first['loc']))} {str(first['input'])[:60]!r}: {first['msg']}"
        else:
            fault = _mismatch(read, question, {video.video_id for video in environment.videos})
            if not fault:
                return read
    raise BadAnswer(f"the agent returned {fault}; return the result of `session.conclude` or `session.answer`")


def _mismatch(answer: Answer, question: Question, videos: set[str]) -> str:
    if answer.option is not None and not 0 <= answer.option < len(question.options):
        return f"option {answer.option} of {len(question.options)}, counted from 0"
    wrong = next((it for it in answer.evidence if it.video_id not in videos or not it.start_s <= it.end_s), None)
    return f"{wrong}, which is no part of a video of this question" if wrong else ""


# Plugins: agents from outside this project, a `Variant` in a Python file or in a module that can be imported.
#
# Only the file or module that the user named is executed.

SUFFIX = ".py"
FORMS = "FILE.py, FILE.py:NAME or package.module:NAME"


def plugin_source(spec: str) -> str:
    """Read the text of the file or module of a spec; raises `UnknownAgent` if there is none."""
    place, _ = split_spec(spec)
    path = place if place.endswith(SUFFIX) else _imported(place).__file__
    if path is None:
        raise UnknownAgent(f"got {spec}, and {place} is a package without code; name the module that defines the agent")
    return _read(path)


def split_spec(spec: str) -> tuple[str, str]:
    """Split a spec into its file or module, and the name in it ("" if it has none)."""
    if spec.endswith(SUFFIX):
        return spec, ""
    place, _, name = spec.rpartition(":")
    is_relative = place.startswith(".") and not place.endswith(SUFFIX)
    if not place or is_relative or not name.isidentifier():
        raise UnknownAgent(f"got {spec} for an agent; write {FORMS}")
    return place, name


def plugin_variants(spec: str, source: str | None = None) -> Mapping[str, Variant]:
    """Variants at the top level of the file or module of a spec, by their Python names, with those that it imports.

    `source` is executed instead of the file's present text, so that all processes run the same. Raises `UnknownAgent`
    if there is no such file or module, and any error of its code.
    """
    place, _ = split_spec(spec)
    if not place.endswith(SUFFIX):
        module = _imported(place)
    else:
        module = _executed(place, _read(place) if source is None else source)
    return {name: value for name, value in vars(module).items() if isinstance(value, Variant)}


def _imported(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise  # the module is there, and something that it imports is not
        raise UnknownAgent(
            f"there is no module {place!r}: {error}; install it or put its folder on PYTHONPATH, or give {FORMS}"
        ) from error


def _read(path: str) -> str:
    try:
        return read_text(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownAgent(f"cannot read {path}: {error}; give a Python file that defines a Variant") from error


@cache
def _executed(path: str, source: str) -> ModuleType:
    module = ModuleType(f"{Path(path).stem}_{hashlib.sha256(source.encode()).hexdigest()[:8]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and type hints look names up
    try:
        exec(compile(source, path, "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


# The agents by name: of five papers, of two that they are compared with, controls, and plugins.

VARIANTS: tuple[Variant, ...] = (
    *(EEA, KINO, VCA, LONGVIDEOAGENT, VIDEOSEEK, VIDEOAGENT2),
    *(VIDEOAGENT, VIDEOTREE),
    *(UNIFORM, BLIND, CHANCE),
)
OWN = f"give one of your own as {FORMS}"


def find_variant(agent: str | Variant, source: str | None = None) -> Variant:
    """Find the agent of a name, or of a plugin's spec (`FORMS`), whose file's text may be given as `source`.

    Raises `UnknownAgent` if there is none, and any error of a plugin's code.
    """
    if isinstance(agent, Variant):
        return _distinct(agent, agent.name)
    if not isinstance(agent, str):
        raise UnknownAgent(f"got {agent!r:.60} for an agent; give a name of `kinodex agents`, FILE.py or a Variant")
    return _distinct(_plugin(agent, source), agent) if is_plugin(agent) else variant_named(agent, advice=OWN)


def variant_named(name: str, advice: str = "choose one of these") -> Variant:
    """Find an agent of this project by its name, never a plugin; raises `UnknownAgent` with the nearest name.

    `advice` ends its message: what else can be named, where a file of one's own can.
    """
    found = next((each for each in VARIANTS if each.name == name), None)
    if found is None:
        names = [each.name for each in VARIANTS]
        near = difflib.get_close_matches(name, names, n=1)
        offer = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownAgent(f"there is no agent {name!r}; {offer}the agents are {', '.join(names)}; {advice}")
    return found


def is_plugin(spec: str) -> bool:
    """True if a spec names a file or a module, not an agent of this project."""
    return spec.endswith(SUFFIX) or ":" in spec


def check_fit(chosen: Variant, *, has_language: bool, unpictured: Sequence[str]) -> None:
    """Refuse an agent at once that would fail later, after an hour of film was captioned.

    `has_language`: its policy is not the built-in model. `unpictured` are titles of videos without frames.
    """
    if chosen.needs_language and not has_language:
        raise NeedsLanguage(
            f"the built-in model has no language, and the agent {chosen.name} reasons in words: it needs a language "
            "model; give --model and --base-url, or choose another agent"
        )
    if chosen.needs_pictures and unpictured:
        readers = [each.name for each in VARIANTS if each.sees_video and not each.needs_pictures]
        more = f" and of {len(unpictured) - 1} more" if len(unpictured) > 1 else ""
        raise NeedsPictures(
            f"the agent {chosen.name} looks at frames, and the library holds only words of {unpictured[0]!r}{more}; "
            f"ingest the video, or choose an agent that reads: {', '.join(readers)}"
        )


def _plugin(spec: str, source: str | None) -> Variant:
    _, name = split_spec(spec)
    found = plugin_variants(spec, source)
    if not name:
        found = {key: each for key, each in found.items() if all(each is not other for other in VARIANTS)}
        if len(found) == 1:
            return next(iter(found.values()))
    if name in found:
        return found[name]
    there = f"which defines {', '.join(found)}" if found else "which defines no Variant at its top level"
    raise UnknownAgent(f"got {spec} for an agent, {there}; write {FORMS} so that it means one")


def _distinct(plugin: Variant, spec: str) -> Variant:
    """Raise `UnknownAgent` for a plugin that traces and reports could not distinguish from an agent of this project."""
    if any(each.name == plugin.name and each is not plugin for each in VARIANTS):
        raise UnknownAgent(
            f"{spec} defines an agent {plugin.name!r}, which is one of kinodex's own; give it another name"
        )
    return plugin


# The gate of all agents: a second look at an answer's evidence alone, which must come to the same answer.
#
# The second look is shown the frames and notes that the answer cites (all that its model was shown, if it cites none),
# not the conversation, and not the answer if there are options. If it comes to another answer, or to none, a search
# that can go on does so, with that doubt; an answer that stands all the same is marked as not `supported`. The calls
# are in the answer's ledger. A doubt is raised once: an agent that gives the same answer on the same evidence again
# has considered it. A second look that the server refuses (a filter of content, too many tokens), or to which no valid
# reply comes, says nothing of an answer, which stands as not verified; only a server that refuses every request ends a
# run.

Claim = tuple[str, int | None]
INVALID = "no reply of the second look was valid"
UNAFFORDABLE = "no budget was left for a second look"
STOPPED = "the run was stopped before a second look"


class Gate:
    """The second looks of one run; `session.doubt` asks it from now on."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._looks: dict[str, tuple[Conclusion | None, str]] = {}
        """By the key of a request: what it found, or why it came to nothing."""
        self._doubted: set[tuple[str, Claim]] = set()
        session.doubt = self.doubt

    async def doubt(self, reply: Answered, shown: Shown) -> str:
        """Say why an answer is in doubt; "" if it is not, if it was before, or without a budget for a second look."""
        request = self._request(reply, shown)
        key = (request_key(request) if request else "", self._claim(reply))
        with suppress(OutOfBudget):
            if key not in self._doubted and await self._is_supported(reply, request, final=False) is False:
                self._doubted.add(key)
                self.session.tentative = reply, shown  # better than none, should the search end without another one
                return self._why(request)
        return ""

    async def mark(self, answer: Answer) -> Answer:
        """The answer of the run with its `supported`, or with the reason why it could not be verified."""
        if self.session.basis is None or (answer.text is None and answer.option is None):
            return answer
        reply, shown = self.session.basis
        request, stopped = self._request(reply, shown), self.session.stop.stopped
        try:
            supported = await self._is_supported(reply, request, final=not stopped)
            unverified = self._looks[request_key(request)][1] if request else ""
        except OutOfBudget:
            supported, unverified = None, STOPPED if self.session.stop.stopped else UNAFFORDABLE
        return replace(answer, supported=supported, unverified=unverified, ledger=self.session.account.ledger)

    async def _is_supported(self, reply: Answered, request: Verify | None, *, final: bool) -> bool | None:
        """True if the second look comes to the same answer, None if it was invalid twice or refused."""
        if request is None:  # nothing was shown, or all looks failed
            return False
        key = request_key(request)
        if key not in self._looks:
            self._looks[key] = await self._look(request, final=final)
            self._record(reply, *self._looks[key])
        look, _ = self._looks[key]
        return None if look is None else self._agrees(look, reply)

    async def _look(self, request: Verify, *, final: bool) -> tuple[Conclusion | None, str]:
        try:
            look = await self.session.ask(request, final=final)
        except AllRejected:
            raise
        except ModelRejected as error:
            return None, f"the second look was refused: {error}"
        return look, INVALID if look is None else ""

    def _record(self, reply: Answered, look: Conclusion | None, why: str) -> None:
        """Emit what a second look found, beside the answer that it was to find."""
        if look is None:
            found, problem = "nothing valid" if why == INVALID else "refused", f"not verified, {why}"
        else:
            found = look.action if look.declines else self._words(look)
            agrees = self._agrees(look, reply)
            problem = "" if agrees else "it does not come to the answer that rests on this evidence"
        arguments = {"answer": self._words(reply), "second_look": found}
        self.session.emit(Acted(self.session.account.rounds, "verify", arguments, problem=problem))

    def _agrees(self, look: Conclusion, reply: Answered) -> bool:
        return not look.declines and self._claim(look) == self._claim(reply)

    def _request(self, reply: Answered, shown: Shown) -> Verify | None:
        items = cited_items(shown, reply.evidence)
        if not items:
            return None
        question, videos = self.session.question, self.session.environment.videos
        claim = "" if question.options else self._words(reply)
        # A search shows frames of earlier rounds at low detail; what an answer rests on is looked at in full.
        frames = tuple(replace(each, detail="auto") for each in items if isinstance(each, ShownFrame))
        notes = tuple(each for each in items if isinstance(each, Note))
        kind = Verify if frames else VerifyNotes
        declining = self.session.rules.at_the_end
        return kind(question=question, videos=videos, claim=claim, frames=frames, notes=notes, declining=declining)

    def _why(self, request: Verify | None) -> str:
        if request is None:
            return "the answer rests on nothing that was seen; look for what shows it"
        look, _ = self._looks[request_key(request)]
        if look is None or look.declines:
            return "a second look at the evidence of that answer alone does not find it there; look for what shows it"
        return f"a second look at the evidence of that answer alone says: {self._words(look)}; look for what settles it"

    def _words(self, reply: Answered) -> str:
        text, option = answer_text(self.session.question, reply)
        return (text or "") if option is None else ". ".join(self.session.question.lettered[option])

    def _claim(self, reply: Answered) -> Claim:
        """The part of a reply that two have in common if they are one answer."""
        text, option = answer_text(self.session.question, reply)
        return (" ".join((text or "").casefold().split()).strip(" .\"'"), option)
