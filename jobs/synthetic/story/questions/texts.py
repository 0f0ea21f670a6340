"""Questions that text on screen answers: what a sign says, what stands beside it, which title card comes before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random

from jobs.synthetic.story.draw_story import text_box
from jobs.synthetic.story.film import Range, Setting, StoryFilm
from jobs.synthetic.story.questions.draft import OPTIONS, Draft, Facts, options
from jobs.synthetic.world.vocabulary import TITLE_WORDS, with_article


def sign(facts: Facts, chance: Random) -> Iterable[Draft]:
    """Ask what the sign beside a landmark says."""
    signs = [scene.setting.sign for scene in facts.scenes if scene.setting.sign]
    for setting in _settings(facts):
        shown = _sign_shown(facts.film, setting)
        if setting.sign is not None and shown:
            # The same words with other numbers, where a film has few signs.
            few = len(set(signs)) < OPTIONS
            made_up = [f"{each.split()[0]} {chance.randint(2, 98)}" for each in signs * 3] if few else []
            yield Draft(
                "sign",
                "text",
                f"What does the sign beside the {setting.landmark.name} say?",
                setting.sign,
                tuple(each for each in dict.fromkeys([*signs, *made_up]) if each != setting.sign),
                shown,
            )


def beside(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what stands beside a sign."""
    for setting in _settings(facts):
        shown = _sign_shown(facts.film, setting)
        if setting.sign is not None and shown:
            text = f"What stands beside the sign that says {setting.sign}?"
            wrong = options(facts.landmarks, setting.landmark)
            yield Draft("beside", "text", text, with_article(setting.landmark.name), wrong, shown)


def title(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask which title card comes before the scene at a landmark."""
    cards = [shot.card.word for shot in facts.film.shots if shot.card]
    for before, after in pairwise(sorted(facts.film.shots, key=lambda shot: shot.first_frame)):
        if before.card is None or after.scene is None or facts.visits(facts.scenes[after.scene]) > 1:
            continue
        word, landmark = before.card.word, facts.scenes[after.scene].setting.landmark
        others = [each for each in dict.fromkeys([*cards, *TITLE_WORDS]) if each != word]
        text = f"Which word is on the title card right before the scene with the {landmark.name}?"
        yield Draft("title", "text", text, word, tuple(others), (before.time,), ordered=True)


def _settings(facts: Facts) -> list[Setting]:
    return list(dict.fromkeys(scene.setting for scene in facts.scenes))


def _sign_shown(film: StoryFilm, setting: Setting) -> tuple[Range, ...]:
    """List the story ranges in which the sign of a setting is wholly in view."""
    return tuple(
        shot.time
        for shot in sorted(film.shots, key=lambda shot: shot.first_frame)
        if shot.scene is not None and film.scenes[shot.scene].setting == setting and text_box(setting, shot.view)
    )
