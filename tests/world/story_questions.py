"""Write the questions of a story film, every need and kind in turn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Literal

from tests.world import story
from tests.world.sketch.questions import OPTIONS, question_count
from tests.world.sketch.scenes import NUMBERS, TITLE_WORDS, WHERE, with_article

Needs = Literal["pictures", "text", "words", "both"]
TURNS: tuple[Needs, ...] = ("pictures", "text", "pictures", "words", "both")


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A question, its options, the index of the true one, and the ranges of the film that show or say it.

    A line of questions.jsonl; `asks` is its `kind`, `evidence` the first of the `ranges`.
    """

    question_id: str
    video: str
    kind: str
    asks: str
    needs: Needs
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: story.Range
    ranges: tuple[story.Range, ...]


def write_questions(film: story.StoryFilm, video: str, limit: int | None = None) -> list[StoryQuestion]:
    """Write questions about a film; the same for the same film.

    `limit` defaults to `question_count`. A film in another order than its story's has those of the questions that need
    no order, with the same ids and options.
    """
    chance = Random(f"questions/{film.film}/{film.seed}")
    facts = Facts(film)
    number = limit or question_count(film.duration_s)
    piles: dict[Needs, dict[str, list[Draft]]] = defaultdict(lambda: defaultdict(list))
    for make in MAKERS:
        for draft in make(facts, chance):
            if len(set(draft.wrong)) >= OPTIONS - 1:
                piles[draft.needs][draft.asks].append(draft)
    written = []
    for index, draft in enumerate(_take_turns(piles, number, chance)):
        options = [draft.right, *chance.sample(draft.wrong, OPTIONS - 1)]
        chance.shuffle(options)
        if not draft.ordered or film.form == "story":
            question_id = f"{film.film}-{index + 1:03d}"
            ranges = _joined([piece for each in draft.evidence for piece in film.on_screen(each)])
            head = question_id, video, draft.asks, draft.asks, draft.needs, draft.text
            written.append(StoryQuestion(*head, tuple(options), options.index(draft.right), ranges[0], ranges))
    return written


def _joined(ranges: Sequence[story.Range]) -> tuple[story.Range, ...]:
    joined: list[story.Range] = []
    for low, high in sorted((round(low, 4), round(high, 4)) for low, high in ranges):
        if joined and low <= joined[-1][1]:
            low, high = joined[-1][0], max(joined.pop()[1], high)
        joined.append((low, high))
    return tuple(joined)


def _take_turns(piles: dict[Needs, dict[str, list[Draft]]], number: int, chance: Random) -> list[Draft]:
    """Take drafts by `TURNS`, of each need its kinds in turn, at most two about the same moment."""
    for kinds in piles.values():
        for pile in kinds.values():
            chance.shuffle(pile)
    chosen: list[Draft] = []
    used: Counter[story.Range] = Counter()
    turns = {needs: _in_turn(piles[needs], used) for needs in set(TURNS)}
    while len(chosen) < number:
        found = [draft for needs in TURNS if (draft := next(turns[needs], None)) is not None]
        if not found:
            break
        chosen += found
    return chosen[:number]


def _in_turn(kinds: dict[str, list[Draft]], used: Counter[story.Range]) -> Iterator[Draft]:
    while any(kinds.values()):
        for pile in kinds.values():
            while pile:
                draft = pile.pop()
                if used[draft.evidence[0]] < 2:
                    used[draft.evidence[0]] += 1
                    yield draft
                    break


@dataclass(frozen=True, slots=True)
class Draft:
    """A question, its true option, options that are false, and the story ranges that show or say the truth.

    `ordered` marks a question that has no answer once the shots are in another order.
    """

    asks: str
    needs: Needs
    text: str
    right: str
    wrong: tuple[str, ...]
    evidence: tuple[story.Range, ...]
    ordered: bool = False


Maker = Callable[["Facts", Random], Iterable[Draft]]


class Facts:
    """The events of a film by kind, and the names of all that occurs in it."""

    def __init__(self, film: story.StoryFilm) -> None:
        self.film = film
        self.scenes = film.scenes
        self.events = list(film.events())
        self.actors = _in_order(event.who for event, _ in self.events if event.kind in ("enter", "return"))
        self.passers = _in_order(event.who for event, _ in self.events if event.kind == "pass")
        self.items = _in_order(
            event.what for event, _ in self.events if event.what and event.kind in ("enter", "return", "give")
        )
        self.landmarks = _in_order(scene.setting.landmark for scene in film.scenes)

    def of_kind(self, *kinds: str) -> list[tuple[story.Event, story.StoryScene]]:
        return [each for each in self.events if each[0].kind in kinds]

    def said(self, kind: str) -> list[tuple[story.Line, tuple[str, str, str]]]:
        """List the lines that say a fact of a kind, with it."""
        return [(line, line.fact) for line in self.film.lines if line.fact is not None and line.fact[0] == kind]

    def visits(self, scene: story.StoryScene) -> int:
        return sum(other.setting == scene.setting for other in self.scenes)


def _in_order(props: Iterable[story.Prop]) -> list[story.Prop]:
    return list(dict.fromkeys(props))


def options(props: Iterable[story.Prop], *without: story.Prop) -> tuple[str, ...]:
    return tuple(with_article(prop.name) for prop in props if prop not in without)


def the(props: Iterable[story.Prop], *without: story.Prop) -> tuple[str, ...]:
    return tuple(f"the {prop.name}" for prop in props if prop not in without)


def moments(events: Sequence[story.Event]) -> tuple[story.Range, ...]:
    return tuple(event.moment for event in events)


# Questions that pictures answer in the order of the story: who comes back, what passes meanwhile or first.


def comes_back(facts: Facts, _: Random) -> Iterable[Draft]:
    for scene in _seen_once(facts):
        returns = [event for event in scene.events if event.kind == "return"]
        if len({event.who for event in returns}) == 1:
            right = returns[0].who
            here = [event.who for event in scene.events if event.kind == "enter"]
            leaves = [event for event in scene.events if event.kind == "leave" and event.who == right]
            others = [*(actor for actor in here if actor != right), *facts.actors]
            text = f"Who goes away from the {scene.setting.landmark.name} and comes back a little later?"
            wrong, shown = the(dict.fromkeys(others), right), moments([*leaves, *returns])
            yield Draft("returns", "pictures", text, f"the {right.name}", wrong, shown, ordered=True)


def brings(facts: Facts, _: Random) -> Iterable[Draft]:
    for scene in _seen_once(facts):
        returns = [event for event in scene.events if event.kind == "return"]
        often = Counter(event.who for event in returns)
        for event in returns:
            left = next(each for each in scene.events if each.who == event.who and each.back_at_s == event.time[0])
            if often[event.who] == 1 and event.what is not None and left.what is None:
                text = f"What does the {event.who.name} bring when it comes back to the {scene.setting.landmark.name}?"
                right, wrong = with_article(event.what.name), options(facts.items, event.what)
                yield Draft("brings", "pictures", text, right, wrong, (event.moment,), ordered=True)


def meanwhile(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what passes while one is away; the false options pass such places too, as the landmark tells the place."""
    for scene in _seen_once(facts):
        passes = [event for event in scene.events if event.kind == "pass"]
        away = [event for event in scene.events if event.kind == "leave" and event.back_at_s is not None]
        often = Counter(event.who for event in away)
        for event in away:
            low, high = event.time[1], event.back_at_s or 0.0
            inside = [each for each in passes if low <= each.moment[0] and each.moment[1] <= high]
            near = {each.who for each in passes if each.time[0] < high and each.time[1] > low}
            if often[event.who] == 1 and len(inside) == 1 and near == {inside[0].who}:
                right = inside[0].who
                likely = [each for each in facts.passers if each.thing in story.PASSERS[scene.setting.place]]
                text = f"What passes by while the {event.who.name} is away from the {scene.setting.landmark.name}?"
                wrong, shown = options(likely, right), (inside[0].moment,)
                yield Draft("meanwhile", "pictures", text, with_article(right.name), wrong, shown, ordered=True)


def first(facts: Facts, _: Random) -> Iterable[Draft]:
    for number, passer in enumerate(facts.passers[: -(OPTIONS - 1)]):
        passes = [event for event, _ in facts.of_kind("pass") if event.who == passer]
        text, right = "Which of these passes by first in the film?", with_article(passer.name)
        wrong = options(facts.passers[number + 1 :])
        yield Draft("first", "pictures", text, right, wrong, moments(passes[:1]), ordered=True)


def last(facts: Facts, _: Random) -> Iterable[Draft]:
    gives = [event for event, _ in facts.of_kind("give")]
    in_order = list(dict.fromkeys(event.what for event in reversed(gives) if event.what))
    for number, item in enumerate(in_order[: -(OPTIONS - 1)]):
        of_item = [event for event in gives if event.what == item]
        text, right = "Which of these is handed over last in the film?", with_article(item.name)
        wrong = options(in_order[number + 1 :])
        yield Draft("last", "pictures", text, right, wrong, moments(of_item[-1:]), ordered=True)


def count(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask which of four things passes this many times: "how many" needs no film, for two is the most frequent."""
    passes: dict[story.Prop, list[story.Event]] = defaultdict(list)
    for event, _scene in facts.of_kind("pass"):
        passes[event.who].append(event)
    for number in range(2, len(NUMBERS)):
        often = [passer for passer in facts.passers if len(passes[passer]) == number]
        for passer in often[:1]:
            text = f"Which of these passes by exactly {NUMBERS[number]} times in the film?"
            right, wrong = with_article(passer.name), options(facts.passers, *often)
            yield Draft("count", "pictures", text, right, wrong, moments(passes[passer]), ordered=True)


def holder(facts: Facts, _: Random) -> Iterable[Draft]:
    changes: dict[story.Prop, list[story.Event]] = defaultdict(list)
    for event, _scene in facts.of_kind("give", "put", "take"):
        if event.what is not None:
            changes[event.what].append(event)
    for item, events in changes.items():
        if len(events) > 1 and events[-1].kind != "put":
            right = events[-1].other if events[-1].kind == "give" else events[-1].who
            assert right is not None, "what is given is given to somebody"
            earlier = dict.fromkeys(event.who for event in events)
            text, wrong = f"Who has the {item.name} in the end?", the(dict.fromkeys([*earlier, *facts.actors]), right)
            yield Draft("holder", "pictures", text, f"the {right.name}", wrong, moments(events[-1:]), ordered=True)


def _seen_once(facts: Facts) -> list[story.StoryScene]:
    return [scene for scene in facts.scenes if facts.visits(scene) == 1]


# Questions that pictures answer in any order of the shots: who gives what to whom and where, and who takes it.

Gives = dict[tuple[story.Prop, story.Prop], list[tuple[story.Event, story.StoryScene]]]


def handover(asks: str, known: tuple[str, str], third: str, text: str) -> Maker:
    """Ask, by two facts of handovers ("what", "who", "other"), for the third, where they leave one answer."""

    def make(facts: Facts, _: Random) -> Iterable[Draft]:
        for pair, gives in _gives(facts, *known).items():
            answers = {getattr(event, third) for event, _ in gives}
            if len(answers) == 1:
                (answer,) = answers
                if third == "what":
                    right, wrong = with_article(answer.name), options(facts.items, answer)
                else:
                    right, wrong = f"the {answer.name}", the(facts.actors, answer, *pair)
                asked = text.format(*(each.name for each in pair))
                yield Draft(asks, "pictures", asked, right, wrong, moments([event for event, _ in gives]))

    return make


giver = handover("giver", ("what", "other"), "who", "Who gives the {} to the {}?")
receiver = handover("receiver", ("what", "who"), "other", "Who gets the {} from the {}?")
given = handover("given", ("who", "other"), "what", "What does the {} give to the {}?")


def given_where(facts: Facts, _: Random) -> Iterable[Draft]:
    known = tuple(dict.fromkeys(WHERE[scene.setting.place] for scene in facts.scenes))
    for (item, who), gives in _gives(facts, "what", "who").items():
        places = {scene.setting.place for _, scene in gives}
        if len(places) == 1:
            right = WHERE[places.pop()]
            text = f"Where does the {who.name} give the {item.name} away?"
            wrong = tuple(place for place in known if place != right)
            yield Draft("where", "pictures", text, right, wrong, moments([event for event, _ in gives]))


def taker(facts: Facts, _: Random) -> Iterable[Draft]:
    for item in facts.items:
        takes = [event for event, _ in facts.of_kind("take") if event.what == item]
        if len(takes) == 1 and takes[0].other is not None:
            right = takes[0].who
            text, wrong = f"Who picks up the {item.name} from the ground?", the(facts.actors, right)
            yield Draft("taker", "pictures", text, f"the {right.name}", wrong, moments(takes))


def _gives(facts: Facts, first: str, second: str) -> Gives:
    groups: Gives = defaultdict(list)
    for event, scene in facts.of_kind("give"):
        groups[getattr(event, first), getattr(event, second)].append((event, scene))
    return groups


# Questions that text on screen answers: what a sign says, what stands beside it, which title card comes before.


def sign(facts: Facts, chance: Random) -> Iterable[Draft]:
    signs = [scene.setting.sign for scene in facts.scenes if scene.setting.sign]
    for setting in _settings(facts):
        shown = _sign_shown(facts.film, setting)
        if setting.sign is not None and shown:
            # The same words with other numbers, where a film has few signs.
            few = len(set(signs)) < OPTIONS
            made_up = [f"{each.split()[0]} {chance.randint(2, 98)}" for each in signs * 3] if few else []
            text = f"What does the sign beside the {setting.landmark.name} say?"
            wrong = tuple(each for each in dict.fromkeys([*signs, *made_up]) if each != setting.sign)
            yield Draft("sign", "text", text, setting.sign, wrong, shown)


def beside(facts: Facts, _: Random) -> Iterable[Draft]:
    for setting in _settings(facts):
        shown = _sign_shown(facts.film, setting)
        if setting.sign is not None and shown:
            text = f"What stands beside the sign that says {setting.sign}?"
            wrong = options(facts.landmarks, setting.landmark)
            yield Draft("beside", "text", text, with_article(setting.landmark.name), wrong, shown)


def title(facts: Facts, _: Random) -> Iterable[Draft]:
    cards = [shot.card.word for shot in facts.film.shots if shot.card]
    for before, after in pairwise(sorted(facts.film.shots, key=lambda shot: shot.first_frame)):
        if before.card is None or after.scene is None or facts.visits(facts.scenes[after.scene]) > 1:
            continue
        word, landmark = before.card.word, facts.scenes[after.scene].setting.landmark
        others = [each for each in dict.fromkeys([*cards, *TITLE_WORDS]) if each != word]
        text = f"Which word is on the title card right before the scene with the {landmark.name}?"
        yield Draft("title", "text", text, word, tuple(others), (before.time,), ordered=True)


def _settings(facts: Facts) -> list[story.Setting]:
    return list(dict.fromkeys(scene.setting for scene in facts.scenes))


def _sign_shown(film: story.StoryFilm, setting: story.Setting) -> tuple[story.Range, ...]:
    """List the story ranges in which the sign of a setting is wholly in view."""
    return tuple(
        shot.time
        for shot in sorted(film.shots, key=lambda shot: shot.first_frame)
        if shot.scene is not None and film.scenes[shot.scene].setting == setting and story.text_box(setting, shot.view)
    )


# Questions that spoken words answer, alone or together with the pictures of the same time.


def spoken(kind: str, text: str, made_up: tuple[str, ...]) -> Maker:
    """Ask for the object of a fact of this kind that a line says of its subject."""

    def make(facts: Facts, _: Random) -> Iterable[Draft]:
        said = _objects(facts, kind)
        for line, (_kind, subject, right) in facts.said(kind):
            wrong = tuple(each for each in _enough(said, made_up) if each != right)
            yield Draft(kind, "words", text.format(subject), right, wrong, (line.time,))

    return make


plan = spoken("plan", "Where does {} plan to go?", story.GOALS)
reason = spoken("reason", "Why was {} late?", story.REASONS)
code = spoken("code", "What is the code word for {}?", story.CODE_WORDS)


def purpose(facts: Facts, _: Random) -> Iterable[Draft]:
    said = _objects(facts, "purpose")
    gives = [event for event, _ in facts.of_kind("give")]
    during = [
        (event, right)
        for event in gives
        for line, (_kind, _subject, right) in facts.said("purpose")
        if event.time[0] <= line.time[0] < event.time[1]
    ]
    for event, right in during:
        assert event.what is not None and event.other is not None, "a gift"
        if sum((other.what, other.other) == (event.what, event.other) for other in gives) == 1:
            text = f"What is the {event.what.name} for that the {event.other.name} is given, as is said then?"
            wrong = tuple(each for each in _enough(said, story.PURPOSES) if each != right)
            yield Draft("purpose", "both", text, right, wrong, (event.moment,))


def cue(facts: Facts, _: Random) -> Iterable[Draft]:
    for _line, (_kind, words, _object) in facts.said("cue"):
        event = next(each for each, _ in facts.of_kind("pass") if each.cue == words)
        text, right = f'What passes by right after somebody says "{words}"?', with_article(event.who.name)
        yield Draft("cue", "both", text, right, options(facts.passers, event.who), (event.moment,))


def who(facts: Facts, _: Random) -> Iterable[Draft]:
    names = {name: actor for actor, name in facts.film.names.items()}
    for line, (_kind, name, _object) in facts.said("name"):
        right = names[name]
        wrong = the(facts.actors, right)
        yield Draft("who", "both", f"Which of these is {name}?", f"the {right.name}", wrong, (line.time,))


def _objects(facts: Facts, kind: str) -> list[str]:
    return [fact[2] for _, fact in facts.said(kind)]


def _enough(said: list[str], made_up: tuple[str, ...]) -> tuple[str, ...]:
    """Take what is said in the film, and others of the kind where that is too little for four options."""
    return tuple(said) if len(said) > 3 else tuple(dict.fromkeys([*said, *made_up]))


# fmt: off
MAKERS: tuple[Maker, ...] = (
    giver, receiver, given, given_where, taker, comes_back, brings, meanwhile, first, last, count, holder, sign, beside,
    title, plan, reason, code, purpose, cue, who,
)
# fmt: on
