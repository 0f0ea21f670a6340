"""Truth of an option of a question about a story, by the words of the question and the film's script alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.sketch.vocabulary import PLACES
from tests.world.sketch.scenes import NUMBERS

Script = dict[str, Any]
Row = dict[str, Any]
SOON_S = 0.5


def is_true(script: Script, row: Row, option: str) -> bool:
    """Check one option; raises if the question is of no known kind or its words cannot be read."""
    pattern, check = CHECKS[row["asks"]]
    words = re.fullmatch(pattern, row["question"])
    assert words is not None, row["question"]
    return check(script, re.sub(r"^(?:the|an?) ", "", option), row, *words.groups())


def events(script: Script, *kinds: str) -> Iterator[dict[str, Any]]:
    """The events of some kinds, in the order of the story."""
    return (event for event in script["events"] if event["kind"] in kinds)


def at(script: Script, landmark: str) -> set[int]:
    """The numbers of the scenes with a landmark."""
    return {scene["scene"] for scene in script["scenes"] if scene["landmark"] == landmark}


def _giver(script: Script, option: str, _: Row, item: str, taker: str) -> bool:
    return any((each["what"], each["other"], each["who"]) == (item, taker, option) for each in events(script, "give"))


def _receiver(script: Script, option: str, _: Row, item: str, giver: str) -> bool:
    return any((each["what"], each["who"], each["other"]) == (item, giver, option) for each in events(script, "give"))


def _given(script: Script, option: str, _: Row, giver: str, taker: str) -> bool:
    return any((each["who"], each["other"], each["what"]) == (giver, taker, option) for each in events(script, "give"))


def _where(script: Script, option: str, _: Row, giver: str, item: str) -> bool:
    gives = [each for each in events(script, "give") if (each["who"], each["what"]) == (giver, item)]
    return any(PLACES[script["scenes"][each["scene"]]["place"]][0] == option for each in gives)


def _taker(script: Script, option: str, _: Row, item: str) -> bool:
    return any((each["what"], each["who"]) == (item, option) for each in events(script, "take"))


def _returns(script: Script, option: str, _: Row, landmark: str) -> bool:
    scenes = at(script, landmark)
    assert len(scenes) == 1, landmark
    here = [each for each in script["events"] if each["scene"] in scenes and each["who"] == option]
    left = [each["end_s"] for each in here if each["kind"] == "leave"]
    return any(each["start_s"] > min(left, default=1e9) for each in here if each["kind"] in ("enter", "return"))


def _brings(script: Script, option: str, _: Row, actor: str, landmark: str) -> bool:
    returns = [e for e in events(script, "return") if e["who"] == actor and e["scene"] in at(script, landmark)]
    assert len(returns) == 1, (actor, landmark)
    return bool(returns[0]["what"] == option)


def _meanwhile(script: Script, option: str, _: Row, actor: str, landmark: str) -> bool:
    scenes = at(script, landmark)
    away = [e for e in events(script, "leave") if e["who"] == actor and e["scene"] in scenes and e["back_at_s"]]
    assert len(away) == 1, (actor, landmark)
    low, high = away[0]["end_s"], away[0]["back_at_s"]
    return any(e["who"] == option and e["start_s"] < high and e["end_s"] > low for e in events(script, "pass"))


def _first(script: Script, option: str, row: Row) -> bool:
    times = [_times(script, each, "pass", "who")[0] for each in row["options"]]
    return _times(script, option, "pass", "who")[0] == min(times)


def _last(script: Script, option: str, row: Row) -> bool:
    times = [_times(script, each, "give", "what")[-1] for each in row["options"]]
    return _times(script, option, "give", "what")[-1] == max(times)


def _times(script: Script, option: str, kind: str, part: str) -> list[float]:
    name = re.sub(r"^(?:the|an?) ", "", option)
    return [event["start_s"] for event in events(script, kind) if event[part] == name]


def _count(script: Script, option: str, _: Row, number: str) -> bool:
    return NUMBERS[len(_times(script, option, "pass", "who"))] == number


def _holder(script: Script, option: str, _: Row, item: str) -> bool:
    """Go through the film and note who has the thing."""
    has = None
    for event in script["events"]:
        if event["what"] == item and event["kind"] != "leave":
            has = {"give": event["other"], "put": None}.get(event["kind"], event["who"])
    return has == option


def _sign(script: Script, option: str, _: Row, landmark: str) -> bool:
    return any(each["landmark"] == landmark and each["sign"] == option for each in script["scenes"])


def _beside(script: Script, option: str, _: Row, sign: str) -> bool:
    return any(each["landmark"] == option and each["sign"] == sign for each in script["scenes"])


def _title(script: Script, option: str, _: Row, landmark: str) -> bool:
    (scene,) = at(script, landmark)
    first = next(number for number, shot in enumerate(script["shots"]) if shot.get("scene") == scene)
    return bool(script["shots"][first - 1].get("title_card") == option)


def _said(script: Script, option: str, _: Row, subject: str) -> bool:
    return any(subject in line["text"] and option in line["text"] for line in script["spoken"])


def _purpose(script: Script, option: str, _: Row, item: str, taker: str) -> bool:
    gives = [each for each in events(script, "give") if (each["what"], each["other"]) == (item, taker)]
    assert len(gives) == 1, (item, taker)
    return any(
        option in line["text"] and low <= line["start_s"] < high
        for line in script["spoken"]
        for low, high in gives[0]["ranges"]
    )


def _cue(script: Script, option: str, _: Row, words: str) -> bool:
    (line,) = [each for each in script["spoken"] if each["text"] == f"{words}."]
    low, high = line["start_s"], line["end_s"] + SOON_S
    return any(e["who"] == option and low <= start <= high for e in events(script, "pass") for start, _ in e["ranges"])


def _who(script: Script, option: str, row: Row, name: str) -> bool:
    """Find the one alone on stage when somebody says this name for the first time as its own."""
    (low, _), *_ = row["ranges"]
    (line,) = [each for each in script["spoken"] if each["start_s"] == low]
    assert name in line["text"]
    scene = next(each["scene"] for each in script["shots"] if each["start_s"] <= low < each["end_s"])
    return on_stage(script, scene, low) == {option}


def on_stage(script: Script, scene: int, time_s: float) -> set[str]:
    """The actors who have entered a scene by a time, in a film in the order of its story."""
    there: set[str] = set()
    for event in script["events"]:
        if event["scene"] == scene and event["start_s"] <= time_s:
            there |= {event["who"]} if event["kind"] in ("enter", "return") else set()
            there -= {event["who"]} if event["kind"] == "leave" else set()
    return there


Check = Callable[..., bool]
CHECKS: dict[str, tuple[str, Check]] = {
    "giver": (r"Who gives the (.+) to the (.+)\?", _giver),
    "receiver": (r"Who gets the (.+) from the (.+)\?", _receiver),
    "given": (r"What does the (.+) give to the (.+)\?", _given),
    "where": (r"Where does the (.+) give the (.+) away\?", _where),
    "taker": (r"Who picks up the (.+) from the ground\?", _taker),
    "returns": (r"Who goes away from the (.+) and comes back a little later\?", _returns),
    "brings": (r"What does the (.+) bring when it comes back to the (.+)\?", _brings),
    "meanwhile": (r"What passes by while the (.+) is away from the (.+)\?", _meanwhile),
    "first": (r"Which of these passes by first in the film\?", _first),
    "last": (r"Which of these is handed over last in the film\?", _last),
    "count": (r"Which of these passes by exactly (.+) times in the film\?", _count),
    "holder": (r"Who has the (.+) in the end\?", _holder),
    "sign": (r"What does the sign beside the (.+) say\?", _sign),
    "beside": (r"What stands beside the sign that says (.+)\?", _beside),
    "title": (r"Which word is on the title card right before the scene with the (.+)\?", _title),
    "plan": (r"Where does (.+) plan to go\?", _said),
    "reason": (r"Why was (.+) late\?", _said),
    "code": (r"What is the code word for (.+)\?", _said),
    "purpose": (r"What is the (.+) for that the (.+) is given, as is said then\?", _purpose),
    "cue": (r'What passes by right after somebody says "(.+)"\?', _cue),
    "who": (r"Which of these is (.+)\?", _who),
}
"""For each kind, the words of its questions and the check of an option (without its article)."""
