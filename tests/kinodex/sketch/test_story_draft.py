"""Facts that questions are made from: everything in the film, once, in order."""

from __future__ import annotations

from kinodex.sketch.story import Prop, write_story
from kinodex.sketch.story_questions import Facts, options, the


def test_everything_in_the_film_is_known_once() -> None:
    film = write_story("film", 900, 1)
    facts = Facts(film)
    for known in (facts.actors, facts.passers, facts.items, facts.landmarks):
        assert known and len(known) == len(set(known))
    assert len(facts.events) == sum(len(scene.events) for scene in film.scenes)
    assert {event.kind for event, _ in facts.of_kind("give", "put")} == {"give", "put"}
    assert sum(facts.visits(scene) == 1 for scene in film.scenes) > 0


def test_things_become_options() -> None:
    cat, owl = Prop("cat", "red"), Prop("dog", "orange")
    assert options([cat, owl], cat) == ("an orange dog",) and the([cat, owl]) == ("the red cat", "the orange dog")
