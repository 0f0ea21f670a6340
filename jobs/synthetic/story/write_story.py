"""Write a story film: its settings and cast, its scenes one after another, its title cards, shots and lines."""

from __future__ import annotations

from random import Random

from jobs.synthetic.story.casting import ACTORS, LANDMARKS, NAMES, SIGN_WORDS, Pool, Prop
from jobs.synthetic.story.cutting import SIGN_WIDTH, cut_scene
from jobs.synthetic.story.film import Line, Setting, StoryFilm, StoryScene, StoryShot, whole_frames
from jobs.synthetic.story.plot import World, play_scene
from jobs.synthetic.story.talk import free_lines
from jobs.synthetic.world.random_scenes import CARD_PAINTS
from jobs.synthetic.world.scene import TitleCard
from jobs.synthetic.world.script import FPS
from jobs.synthetic.world.vocabulary import PLACE_NAMES, TITLE_WORDS

SHORTEST_S = 30.0
SCENE_S = (80.0, 210.0)
LEAST_SCENE_S = 24.0
CARD_S = (3.0, 4.0)
SECONDS_PER_ACTOR = 110.0


def write_story(film: str, duration_s: float, seed: int) -> StoryFilm:
    """Write a film of `duration_s` seconds (whole frames, at least 30 s), the same for the same arguments."""
    chance = Random(f"story/{film}/{seed}")
    total = max(SHORTEST_S, whole_frames(duration_s))
    pool = Pool(chance)
    number = max(4, min(len(NAMES), round(total / SECONDS_PER_ACTOR)))
    cast = [actor for _ in range(number) if (actor := pool.prop(ACTORS))]
    world = World(pool, chance, dict(zip(cast, chance.sample(NAMES, len(cast)), strict=True)))
    shots: list[StoryShot] = []
    scenes: list[StoryScene] = []
    lines: list[Line] = []
    settings: list[Setting] = []
    now = 0.0
    while now < total - 1 / FPS:
        now = _card(shots, now, pool, chance)
        end = _scene_end(now, total, chance)
        settings.append(_setting(settings, pool, chance))
        scene, writing = play_scene(settings[-1], _company(cast, scenes, chance), now, end, world)
        shots += cut_scene(len(scenes), scene, writing.guards, chance)
        scenes.append(scene)
        lines += writing.lines
        now = end
    lines += free_lines(shots, scenes, lines, world.names, pool, chance)
    spoken = tuple(sorted(lines, key=lambda line: line.time))
    return StoryFilm(film, seed, "story", tuple(shots), tuple(scenes), spoken, world.names)


def _card(shots: list[StoryShot], now: float, pool: Pool, chance: Random) -> float:
    """Put a title card before a scene while there are words left; returns when it ends."""
    word = pool.word(TITLE_WORDS)
    if word is None:
        return now
    frames = round(chance.uniform(*CARD_S) * FPS)
    shots.append(StoryShot(round(now * FPS), frames, card=TitleCard(word, *chance.choice(CARD_PAINTS))))
    return now + frames / FPS


def _scene_end(now: float, total: float, chance: Random) -> float:
    """Choose when a scene ends; the last one ends with the film."""
    length = chance.uniform(*SCENE_S)
    length = min(length, max(LEAST_SCENE_S, total / 3 * chance.uniform(0.8, 1.1)))
    left = total - now
    least = max(LEAST_SCENE_S, length / 2)
    return total if left < length + least + CARD_S[1] else whole_frames(now + length)


def _setting(before: list[Setting], pool: Pool, chance: Random) -> Setting:
    """Choose where a scene is: one time in three where one was before, but not the last, as it looked then."""
    earlier = [setting for setting in before if setting != before[-1]]
    place = chance.choice([name for name in PLACE_NAMES if not before or name != before[-1].place])
    again = bool(earlier) and chance.random() < 0.35
    landmark = None if again else pool.prop(LANDMARKS[place])
    if landmark is None:
        return chance.choice(earlier)
    word = pool.word(SIGN_WORDS) if chance.random() < 0.8 else None
    landmark_x = chance.choice((0.2, 0.3, 0.7, 0.8))
    toward_middle = 1 if landmark_x < 0.5 else -1
    sign_x = landmark_x + toward_middle * (0.14 + SIGN_WIDTH / 2)
    sign = None if word is None else f"{word} {chance.randint(2, 98)}"
    return Setting(place, chance.random() < 0.35, landmark, landmark_x, sign, sign_x, chance.randrange(10**6))


def _company(cast: list[Prop], scenes: list[StoryScene], chance: Random) -> list[Prop]:
    """Choose who may come into a scene: one who was in the last scene, the others by chance, in random order."""
    last = [event.who for event in scenes[-1].events if event.who in cast] if scenes else []
    kept = [chance.choice(last)] if last else []
    others = chance.sample([actor for actor in cast if actor not in kept], min(len(cast) - 1, chance.randint(3, 4)))
    company = [*kept, *others]
    chance.shuffle(company)
    return company
