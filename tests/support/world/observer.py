"""An ideal observer of story films in the place of a model: it answers every request that agents send.

It recognises a picture by its bytes, and knows then what the film's script shows at that instant; everything else it
reads in the request: the question, lines, notes, segments. It knows no question's truth. It can err at set rates
(`Errors`): the same question and picture err alike each time, and so do the same question and request.

    with ChatServer(Observer(Eyes.of(library, stages)), models=["observer"]) as server: ...     # over HTTP
    await ask(question, environment, InProcess(Observer(eyes)), agent="eea")                      # the same, faster
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from random import Random
from typing import Any

from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.models.schema_ladder import repair_messages, response_format, tool_parameters
from kinodex.agent.prompts.messages import join_turns, turn_messages
from kinodex.agent.prompts.rendering import request_message
from kinodex.agent.prompts.tokens import picture_tokens, text_tokens
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from tests.support.servers.chat_server import Behaviour, calling
from tests.support.servers.rules_prompt import Asked, Frame, Part, read
from tests.support.servers.rules_tools import clips
from tests.support.world.inference import (
    AFTER_S,
    HANDOVERS,
    SPOKEN,
    WHOLE,
    Settled,
    Wanted,
    promise,
    settle,
)
from tests.support.world.sights import (
    GROUND,
    PERFECT,
    Errors,
    Heard,
    Sight,
    Stage,
    described,
    facts_of,
    names_in,
    read_sight,
    read_times,
    seen_with_errors,
    told,
)
from tests.world.sketch.scenes import WHERE

AT_BORDER_S = 0.1
"""Segments are named to a tenth of a second."""
ALIKE = 6.0
"""Mean difference of grey levels of 256 up to which two small pictures are the same one, scaled and encoded again."""
Reply = dict[str, Any]


class Eyes:
    """The stored pictures of some films by their bytes: of which film each is, and of which time."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}
        self._known: dict[bytes, tuple[str, float]] = {}
        self._stored: dict[float, list[tuple[str, bytes]]] = {}
        self._sights: dict[tuple[str, float], Sight] = {}

    @classmethod
    def of(cls, library: LibraryReader, rows: Iterable[VideoRow], stages: Mapping[str, Stage]) -> Eyes:
        """Learn the stored frames of some videos of a library, whose titles are those of the stages."""
        eyes = cls()
        for row in rows:
            eyes.stages[row.title] = stages[row.title]
            numbers = [int(each) for each in library.in_memory(row.video_id).stored.frame_no]
            for frame in library.frames(row.video_id, numbers):
                key = row.title, frame.time_s - row.start_s
                eyes._known.setdefault(digest_of(frame.jpeg), key)
                eyes._stored.setdefault(round(frame.time_s, 2), []).append((row.title, frame.jpeg))
        return eyes

    def look(self, frame: Frame) -> tuple[str, Sight]:
        """The film of a picture and what it shows, at the time that its label gives it; "" and nothing if unknown.

        A picture that a client scaled and encoded again is compared with the stored ones of the time on its label.
        """
        known = self._known.get(digest_of(frame.jpeg)) or self._scaled(frame)
        if known is None:
            return "", Sight(frame.time_s, number=frame.number)
        if known not in self._sights:
            self._sights[known] = self.stages[known[0]].see(known[1])
        return known[0], replace(self._sights[known], time_s=frame.time_s, number=frame.number)

    def knows(self, digest: bytes) -> bool:
        """True if this is the hash of a stored picture."""
        return digest in self._known

    def _scaled(self, frame: Frame) -> tuple[str, float] | None:
        small = _thumbnail(frame.jpeg)
        for _, jpeg in self._stored.get(round(frame.time_s, 2), ()):
            difference = sum(abs(one - other) for one, other in zip(small, _thumbnail(jpeg), strict=True))
            if difference <= ALIKE * len(small):
                return self._known.setdefault(digest_of(frame.jpeg), self._known[digest_of(jpeg)])
        return None


def digest_of(jpeg: bytes) -> bytes:
    """The hash of a picture; in this process (`InProcess`) hashes stand in the place of pictures."""
    return jpeg if len(jpeg) == hashlib.sha1().digest_size else hashlib.sha1(jpeg).digest()


def _thumbnail(jpeg: bytes) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as picture:
        return picture.convert("L").resize((32, 18)).tobytes()


@dataclass(frozen=True)
class View:
    """A request as the observer takes it in: the question, what is seen and what is read, and its own errors."""

    asked: Asked
    wanted: Wanted
    sights: tuple[Sight, ...]
    lines: tuple[Heard, ...]
    errors: Errors
    chance: Random = field(repr=False)

    @cached_property
    def frames(self) -> tuple[Sight, ...]:
        """The sights of the request's pictures."""
        numbers = {frame.number for frame in self.asked.frames}
        return tuple(sight for sight in self.sights if sight.number in numbers)

    @property
    def last_word(self) -> bool:
        """True if an answer is asked for, whatever else there is to look at."""
        asked = self.asked
        over = "Exploring is over" in asked.text or "answer now" in asked.texts[-1].casefold()
        answers = asked.reply == "Conclusion" and "Answer only if" not in asked.text
        return over or answers or asked.tools == {"answer"}

    def settled(self) -> Settled | None:
        """The option that all this settles; in error, one that it does not."""
        found = settle(self.wanted, self.sights, self.lines, last_word=self.last_word)
        if found is None and self.wanted.options and self.sights and self.chance.random() < self.errors.early:
            return self.guess()
        return found

    def guess(self) -> Settled:
        """The option that was seen most often, by chance among equals."""
        options = list(self.wanted.options)
        self.chance.shuffle(options)
        return Settled(max(options, key=lambda name: sum(name in sight.names for sight in self.sights)))

    def rating(self, part: Part) -> tuple[int, str]:
        """The promise of a segment, 0 to 100, and its reason in a few words."""

        def at(time_s: float) -> Sight | None:
            near = min(self.sights, key=lambda sight: abs(sight.time_s - time_s), default=None)
            return near if near is not None and abs(near.time_s - time_s) <= AT_BORDER_S else None

        inside = [sight for sight in self.sights if part.start_s < sight.time_s < part.end_s]
        after_s = AFTER_S.get(self.wanted.kind, 0.0)
        needed = [line for line, _ in self.wanted.telling(self.lines)]
        heard = any(part.start_s < line.end_s + after_s and part.end_s > line.start_s for line in needed)
        if self.wanted.kind == "purpose":
            item = [sight.time_s for sight in self.sights if self.wanted.item in sight.things]
            heard = heard and any(abs(time_s - line.start_s) < 60 for line in needed for time_s in item)
        score, why = promise(self.wanted, at(part.start_s), at(part.end_s), inside, float(heard))
        if self.errors.noise:
            score = 5 * round((score + self.chance.gauss(0.0, self.errors.noise)) / 5)
        said = [told(sight, self.wanted.named) for sight in why]
        return max(0, min(100, round(score))), ", ".join(filter(None, dict.fromkeys(said)))


class Observer:
    """Answers the JSON body of a chat request, as `ChatServer` has it answered."""

    def __init__(self, eyes: Eyes, errors: Errors = PERFECT, seed: int = 0) -> None:
        self.eyes, self.errors, self.seed = eyes, errors, seed

    def __call__(self, body: dict) -> dict | str | Behaviour:
        view = self.view(read(body))
        asked = view.asked
        if asked.tools:
            return calling(seek(view))
        if not asked.reply:
            return master(view)
        return RULES["ToolCall" if asked.reply == "Action" else asked.reply](view)

    def view(self, asked: Asked) -> View:
        """Take a request in."""
        question = asked.question
        wanted = Wanted.read(question, self.errors.reach_s)
        sights = []
        for frame in asked.frames:
            film, sight = self.eyes.look(frame)
            chance = Random(f"{self.seed}/{question.text}/{film}/{sight.time_s:.2f}")
            sights.append(seen_with_errors(sight, self.errors, chance))
        lines = []
        for note in [*asked.notes, *clips(asked), *_subtitles(asked)]:
            lines += [Heard(note.number, note.start_s, note.end_s, facts)] if (facts := facts_of(note.text)) else []
            sights += _read(note)
        sights += [sight for text in asked.texts for sight in read_times(_free_text(text))]
        digest = hashlib.sha1("\n".join(asked.texts).encode())
        for frame in asked.frames:
            digest.update(digest_of(frame.jpeg))
        chance = Random(f"{self.seed}/{question.text}/{digest.hexdigest()}")
        return View(asked, wanted, tuple(sights), tuple(lines), self.errors, chance)


_SUBTITLE = re.compile(r"^- ([\d.]+) s to ([\d.]+) s: (.*)$", re.MULTILINE)


def _subtitles(asked: Asked) -> list[Part]:
    """Lines without numbers, as tools that look at a range quote them."""
    return [Part(0, float(each[1]), float(each[2]), text=each[3]) for each in _SUBTITLE.finditer(asked.text)]


def _read(note: Part) -> list[Sight]:
    """The sights that a note tells of: at its time, or at those that it gives."""
    text = note.text.rpartition("?")[2]
    if note.source == "speech":
        return []
    if note.source == "screen_text":
        kind = "sign" if any(each.isdigit() for each in text) else "title card"
        return [read_sight(f"{kind} {text.strip()}", note.start_s, note.number)]
    at_times = list(read_times(text, note.number))
    one = read_sight(text, note.start_s, note.number)
    return at_times or ([one] if one.names or one.setting else [])


def _free_text(text: str) -> str:
    """A message without the numbered notes, which are read for themselves, and without the question."""
    return re.sub(r"^(?:\d+\. .*|Question: .*)$", "", text, flags=re.MULTILINE)


# Replies: answers, ratings, queries.


def conclude(view: View, found: Settled | None = None) -> Reply:
    """The answer, if it is settled or has to be given; else that the evidence is insufficient."""
    found = found or view.settled()
    forced = re.search(
        "has to be chosen in any case|is true in any case|even if the evidence is thin|even if little", view.asked.text
    )
    if found is None and (forced or "Nothing of the video is shown" in view.asked.text) and view.wanted.options:
        found = view.guess()
    if found is None:
        return {"action": "insufficient_evidence", "option": None, "answer": None, "evidence": []}
    letter, evidence = view.wanted.options[found.option], list(found.evidence)
    why = f"{found.option} is what these show"
    return {"reasoning": why, "action": "answer", "option": letter, "answer": found.option, "evidence": evidence}


def decide(view: View) -> Reply:
    """Answer once it is settled; else explore the segment with the highest score, of equals the longest new one."""
    found = view.settled()
    left = [part for part in view.asked.segments if part.open]
    if found or not left or "Exploring is over" in view.asked.text:
        return {"segment": None, **conclude(view, found)}
    scored = {part.number: part.score or view.rating(part)[0] / 1000 for part in left}
    best = max(left, key=lambda part: (scored[part.number], not part.again, part.end_s - part.start_s))
    return {"action": "explore", "segment": best.number, "option": None, "answer": None, "evidence": []}


def rate(view: View) -> Reply:
    """Rate each segment, by the sights at its borders and inside and by the lines that are read."""
    rated = [(part.number, *view.rating(part)) for part in view.asked.segments]
    return {"segments": [{"segment": number, "reasoning": why, "score": score} for number, score, why in rated]}


def discover(view: View) -> Reply:
    """Search texts: from the question alone, or the places where its things are seen."""
    return {"queries": propose(view) if view.asked.frames else view.wanted.queries()}


def plan_search(view: View) -> Reply:
    """Search texts, and where the answer is: in words, in the whole film, or at one moment."""
    kind = view.wanted.kind
    where = "words" if kind in SPOKEN else "whole film" if kind in WHOLE else "moment"
    return {**discover(view), "where": where}


def propose(view: View) -> list[str]:
    """The places where a named thing was seen, by their landmarks, and who was seen with it."""
    texts: list[str] = []
    for sight in view.sights:
        if not (view.wanted.named & sight.names and sight.setting):
            continue
        texts += [f"the {sight.landmark} {WHERE[sight.setting[0]]}"] if sight.landmark else []
        holder = sight.holder(view.wanted.item) if view.wanted.kind in HANDOVERS else None
        texts += [f"the {holder} with the {view.wanted.item}"] if isinstance(holder, str) and holder != GROUND else []
    return [text for text in dict.fromkeys(texts) if text not in view.asked.text][:2]


def choose_frames(view: View) -> Reply:
    """Times in the most promising gaps between what is known."""
    found = view.settled()
    if found or not (gaps := _gaps(view)):
        return {"video": None, "times_s": [], **conclude(view, found)}
    count = view.asked.number(r"the times of 1 to (\d+) frames", 1)
    times_s = sorted(round((gap.start_s + gap.end_s) / 2, 1) for gap in gaps[:count])
    blank: Reply = {"video": None, "option": None, "answer": None, "evidence": []}
    return {**blank, "action": "look", "times_s": times_s}


def _gaps(view: View, least_s: float = 2.0) -> list[Part]:
    """The ranges between the sights and times that are known, the most promising first, of equals the longest."""
    listed = view.asked.text.partition("You have seen so far:")[2].partition("\n\nIf ")[0]
    known = {sight.time_s for sight in view.sights} | {float(each) for each in re.findall(r"([\d.]+) s", listed)}
    gaps = []
    for video in view.asked.videos:
        times_s = [video.start_s, *sorted(each for each in known if video.start_s < each < video.end_s), video.end_s]
        gaps += [Part(0, low, high, video.video) for low, high in pairwise(times_s) if high - low > least_s]
    return sorted(gaps, key=lambda gap: (-view.rating(gap)[0], gap.start_s - gap.end_s))


# Replies: words about pictures, for agents that read.


def describe(view: View) -> Reply:
    """A segment by its frames: what each shows."""
    texts = dict.fromkeys(described(sight) for sight in view.frames)
    return {"caption": ", then ".join(texts) or "nothing is shown", "confidence": 95}


def describe_frames(view: View) -> Reply:
    """A description for each frame; if something is looked for, what of it the frame shows."""
    query = view.asked.line("What is looked for")
    rows = []
    for sight in view.frames:
        row = {"frame": sight.number, "description": described(sight)}
        names = sorted(set(names_in(query)) & sight.names)
        rows.append({**row, "relevant": f"shows {', '.join(names)}" if names else None} if query else row)
    return {"frames": rows}


def caption_frames(view: View) -> Reply:
    """The same in one clause a frame."""
    sure = 0.95 if "For every clause give a confidence" in view.asked.text else None
    said = [(sight.number, described(sight)) for sight in view.frames]
    return {"captions": [{"frame": at, "clauses": [{"text": text, "confidence": sure}]} for at, text in said]}


def focus(view: View) -> Reply:
    """The frames of a clip that show a thing that a query names, in words, with their times."""
    query = view.asked.line("What is to be found out")
    shown = [sight for sight in view.frames if not names_in(query) or sight.names & set(names_in(query))]
    said = [f"at {sight.time_s:g} s {described(sight)}" for sight in shown]
    return {"found": bool(said), "answer": ", ".join(said), "frames": [sight.number for sight in shown]}


def observe(view: View) -> Reply:
    """All frames of a clip in words, with their times."""
    said = [f"at {sight.time_s:g} s {described(sight)}" for sight in view.frames]
    return {"observation": ", ".join(said) or "nothing of it"}


def summarize(view: View) -> Reply:
    """Every so often one of the captions."""
    texts = [note.text for note in view.asked.notes] or [described(sight) for sight in view.frames]
    some = list(dict.fromkeys(texts[:: max(1, len(texts) // 8)]))[:8]
    title = " ".join(some[0].split()[:8]) if some else "nothing"
    return {"title": title, "summary": ". ".join(some) or "Nothing is known."}


# Replies: steps of agents with tools and of those that read captions.


def reflect(view: View) -> Reply:
    """Sure if the notes settle the question."""
    found = settle(view.wanted, view.sights, view.lines, last_word=False)
    return {"reasoning": found.option if found else "nothing settles it", "confidence": 3 if found else 1}


def find_missing(view: View) -> Reply:
    """Named things, in the most promising segments."""
    rated = sorted(view.asked.segments, key=lambda part: (-view.rating(part)[0], part.start_s - part.end_s))
    texts = view.wanted.queries()
    most = view.asked.number(r"Describe 1 to (\d+) frames", 1)
    return {
        "frames": [
            {"segment": part.number, "description": texts[at % len(texts)]} for at, part in enumerate(rated[:most])
        ]
    }


def relevances(view: View) -> Reply:
    """Clusters by the share of what the question names that their captions tell."""
    named = view.wanted.named
    seen = {sight.number: sight for sight in view.sights}
    shares = [len(named & seen[note.number].names) / max(1, len(named)) for note in view.asked.notes]
    levels = [3 if share == 1 else 2 if share else 1 for share in shares]
    numbered = zip(view.asked.notes, levels, strict=True)
    return {"clusters": [{"cluster": note.number, "relevance": level} for note, level in numbered]}


def assess(view: View) -> Reply:
    """The answer with full confidence if it is settled, else none."""
    said = conclude(view)
    return {**said, "confidence": 5 if said["action"] == "answer" else 0}


def plan(view: View) -> Reply:
    """One step: the tool call."""
    call = tool_call(view)["action"]
    return {"reasoning": "", "steps": [f"{call['tool']} from {call['start_s']:g} s"], "action": call}


def tool_call(view: View) -> Reply:
    """Have the most promising gap captioned."""
    gap = (_gaps(view) or view.asked.videos)[0]
    start_s, end_s = gap.start_s, min(gap.end_s, gap.start_s + 30.0)
    blank = {"video": gap.video or None, "box": None, "label": None}
    return {"action": {"tool": "caption", "start_s": start_s, "end_s": end_s, **blank}}


def seek(view: View) -> Reply:
    """Overview first, then the most promising gap, close up if it is short; the answer when it is settled."""
    found = view.settled()
    steps = [re.search(r"Step (\d+) of (\d+)", text) for text in view.asked.texts]
    last = next((step for step in reversed(steps) if step), None)
    gaps = _gaps(view)
    if found or view.asked.tools == {"answer"} or not gaps or (last and last[1] == last[2]):
        said = conclude(view, found)
        answer = {name: said[name] for name in ("option", "answer", "evidence")}
        return {"tool": "answer", "sufficient": said["action"] == "answer", **answer}
    if not any('"overview"' in said for said in view.asked.said):
        return {"tool": "overview", "video": view.asked.videos[0].video or None}
    longest_s = float(view.asked.number(r"a clip of at most (\d+) s", 4))
    best = gaps[0]
    query = f"What of {', '.join(sorted(view.wanted.named)) or 'all things'} is to be seen?"
    if best.end_s - best.start_s >= 4 * longest_s and view.rating(best)[0] < 80:
        return _ranged("skim", best, best.start_s, best.end_s, query)
    start_s = max(best.start_s, (best.start_s + best.end_s - longest_s) / 2)
    return _ranged("focus", best, start_s, min(best.end_s, start_s + longest_s), query)


def _ranged(tool: str, part: Part, start_s: float, end_s: float, query: str) -> Reply:
    return {"tool": tool, "video": part.video or None, "start_s": start_s, "end_s": end_s, "query": query}


def master(view: View) -> str:
    """Have a clip located, have it looked at, once more, and answer when it is settled or the turns are used up."""
    found = view.settled()
    grounded = sum("<request_grounding>" in said for said in view.asked.said)
    looks = view.asked.said and "<request_grounding>" in view.asked.said[-1]
    if found or "answer now" in view.asked.texts[-1].casefold() or (grounded > 1 and not looks):
        said = conclude(view, found)
        return f"<think>so it is</think><answer>{said['option'] or 'insufficient_evidence'}</answer>"
    wish = ", ".join(sorted(view.wanted.named)) or view.wanted.question.text
    tag = "visual_query" if looks else "request_grounding"
    return f"<think>not yet</think><{tag}>{wish}</{tag}>"


def locate(view: View) -> Reply:
    """The clip whose words say what the question needs, if any do, else the first one."""
    needed = {line.number for line, _ in view.wanted.telling(view.lines)}
    there = [part.number for part in clips(view.asked)]
    told = [number for number in there if number in needed]
    return {"reasoning": "a line that is needed" if told else "no words tell", "clips": (told or there)[:1]}


RULES: Mapping[str, Callable[[View], Reply]] = {
    "Conclusion": conclude,
    "Queries": discover,
    "SearchPlan": plan_search,
    "SegmentScores": rate,
    "SegmentRatings": rate,
    "Decision": decide,
    "StepDecision": decide,
    "FrameChoice": choose_frames,
    "Description": describe,
    "Summary": summarize,
    "PartSummary": summarize,
    "Relevances": relevances,
    "Reflection": reflect,
    "Missing": find_missing,
    "DescribedFrames": describe_frames,
    "SkimmedFrames": describe_frames,
    "Finding": focus,
    "Assessment": assess,
    "Plan": plan,
    "ToolCall": tool_call,
    "FrameCaptions": caption_frames,
    "Located": locate,
    "Observation": observe,
}
"""The rule for a reply's class, the name of the schema that a request asks for."""


class InProcess:
    """The observer as a model of this process: real prompts and replies, no HTTP, pictures as they are stored.

    Tokens are estimated as a forecast does, pictures by the size at which they would be sent.
    """

    name, has_language = "observer", True

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    async def ask(self, request: Request[R]) -> Exchange[R]:
        """Answer one request."""
        body = _body(request, self.observer.eyes)
        said = self.observer(body)
        if isinstance(said, Behaviour):
            [(tool, arguments)] = said.calls
            said = {"tool": tool, **json.loads(str(arguments))}
        text = said if isinstance(said, str) else json.dumps(said)
        reply, invalid = parse_reply(text, request)
        return Exchange(reply, invalid, Usage(_tokens(body, request), text_tokens(text)), raw=text)


@lru_cache(10_000)
def _digest(jpeg: bytes) -> bytes:
    return digest_of(jpeg)


def _hashed(frame: ShownFrame, eyes: Eyes) -> ShownFrame:
    """A frame with the hash of a stored picture: to write pictures as text and read them again is most of a request."""
    digest = _digest(frame.jpeg)
    return replace(frame, detail="auto", jpeg=digest if eyes.knows(digest) else frame.jpeg)


SENT_PX = 512, 288
"""The size of a story's frame as roles send it by default."""


def _body(request: Request[Any], eyes: Eyes) -> dict[str, Any]:
    """The body that an endpoint would be sent, with pictures as they are stored."""
    stored: Any = replace(request, complaint="", bad_reply="") if request.bad_reply else request
    if request.frames:
        stored = replace(stored, frames=tuple(_hashed(frame, eyes) for frame in request.frames))
    messages = join_turns([request_message(stored, None), *turn_messages(request.turns)])
    if request.bad_reply:
        messages = join_turns([*messages, *repair_messages(request)])
    body: dict[str, Any] = {"model": InProcess.name, "messages": messages}
    if request.tools:
        body |= tool_parameters(request.tools, request.tool_choice)
    elif request.form == "json":
        schema = response_format("json_schema", request.Reply.__name__, request.schema())
        body["response_format"] = schema
    return body


def _tokens(body: Mapping[str, Any], request: Request[Any]) -> int:
    texts = (part for message in body["messages"] for part in _texts(message["content"]))
    pictures = (picture_tokens(*SENT_PX, detail=frame.detail) for frame in request.frames)
    return sum(map(text_tokens, texts)) + sum(pictures)


def _texts(content: str | list[dict[str, Any]]) -> Sequence[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
