"""The parts that the world's things play in a story, and the words that are written and spoken in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from jobs.synthetic.world.vocabulary import COLOUR_NAMES

ACTORS = ("person", "robot", "ghost", "cat", "dog", "horse", "elephant", "rabbit", "duck")
"""Those who come and go, carry, give and take."""
# fmt: off
ITEMS = (
    "key", "book", "guitar", "drum", "bell", "hat", "ball", "crown", "flag", "gift", "candle", "shoe", "cup", "bottle",
    "umbrella", "cake", "envelope", "apple", "flower", "kite", "anchor", "star", "heart", "clock",
)
"""Things that are carried and change hands."""
# fmt: on
PASSERS: Mapping[str, tuple[str, ...]] = {
    "sea": ("boat", "plane", "helicopter", "balloon", "bird"),
    "desert": ("car", "truck", "plane", "balloon", "helicopter"),
    "snow": ("train", "tractor", "helicopter", "plane", "truck"),
    "forest": ("bicycle", "tractor", "train", "bird", "helicopter"),
    "city": ("car", "bus", "truck", "bicycle", "helicopter"),
    "mountains": ("train", "bus", "balloon", "plane", "bicycle"),
    "meadow": ("tractor", "bicycle", "balloon", "car", "train"),
    "room": ("butterfly", "snail", "turtle", "spider", "snake"),
}
"""Things that pass a place without a stop."""
LANDMARKS: Mapping[str, tuple[str, ...]] = {
    "sea": ("lighthouse", "bridge", "castle"),
    "desert": ("cactus", "tent", "castle", "windmill"),
    "snow": ("house", "tent", "castle"),
    "forest": ("house", "tent", "mushroom", "tree"),
    "city": ("house", "bridge", "tree"),
    "mountains": ("castle", "house", "tent", "bridge"),
    "meadow": ("windmill", "tree", "house", "tent"),
    "room": ("table", "chair", "lamp", "ladder"),
}
"""A thing that stands in a place for good and names it."""
# fmt: off
NAMES = (
    "Mara", "Otto", "Lina", "Bruno", "Selma", "Igor", "Nadia", "Felix", "Greta", "Hugo", "Tilda", "Oskar", "Paula",
    "Rufus", "Wanda", "Emil", "Klara", "Jonas", "Vera", "Anton", "Frida", "Leo", "Rosa", "Viktor",
)
SIGN_WORDS = (
    "BAKERY", "HOTEL", "STATION", "MUSEUM", "LIBRARY", "SCHOOL", "TICKETS", "FERRY", "GARAGE", "CINEMA", "THEATRE",
    "FACTORY", "CAMPING", "AIRPORT", "STUDIO", "CASINO", "LAUNDRY", "KITCHEN", "OFFICE", "PARKING",
)
GOALS = (
    "the coast", "the old mill", "the north gate", "the railway station", "the opera", "the southern islands",
    "the glass tower", "the winter fair", "the capital", "the monastery", "the spice market", "the salt lake",
    "the border", "the observatory", "the hot springs", "the canal", "the botanical garden", "the silver mine",
)
REASONS = (
    "the ferry was cancelled", "a wheel broke", "the letter came too late", "the road was flooded",
    "there was no ticket left", "somebody had locked the cellar", "the map was upside down", "the cook fell ill",
    "it rained into the piano", "the alarm never rang", "a neighbour needed help", "the dog had run off",
    "the wrong train was announced", "the bridge was closed", "a tooth was aching", "nobody had paid the bill",
)
GATES = (
    "the cellar", "the vault", "the greenhouse", "the archive", "the tower room", "the boathouse", "the attic",
    "the library wing", "the engine room", "the chapel", "the wine store", "the back door",
)
CODE_WORDS = (
    "marzipan", "velvet", "compass", "nutmeg", "pelican", "saffron", "granite", "tango", "walnut", "zephyr",
    "lavender", "pickle", "amber", "domino", "juniper", "tulip",
)
PURPOSES = (
    "the wedding", "the harvest dance", "the school play", "the trial", "the jubilee", "the night watch",
    "the auction", "the parade", "the experiment", "the farewell dinner", "the exhibition", "the chess final",
    "the choir", "the long crossing", "the picnic", "the anniversary", "the rehearsal", "the inspection",
)
CUES = (
    "Hold on tight", "Not a sound now", "It is almost time", "Watch the horizon", "Somebody is coming",
    "Let us count to three", "Stay where you are", "Did you hear that", "Close your eyes", "Make room, please",
    "Wait for the signal", "Here it comes", "Nobody move", "Keep to the side", "Look up from your work",
    "Any moment now",
)
CHATTER = (
    "It was quieter than anyone remembered.", "Nobody knows how long this will take.",
    "From here on everything looks a little different.", "The weather used to be better.",
    "I have been here once before, as a child.", "Some things are better left alone.",
    "Ask me again tomorrow.", "That is what they said last year, too.", "It is a long story.",
    "We should write that down.", "I could sleep for a week.", "Everybody has a favourite song.",
    "The soup was too salty again.", "One of us has to stay awake.", "I never liked that colour.",
    "My aunt would know what to do.",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Prop:
    """A thing of one colour; in a film there is one of each."""

    thing: str
    colour: str

    @property
    def name(self) -> str:
        """The thing in words: "red key"."""
        return f"{self.colour} {self.thing}"


class Pool:
    """Things, words and names of one film, each handed out once."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self._used: set[Prop] = set()
        self._words: dict[Sequence[str], list[str]] = {}

    def prop(self, things: Sequence[str]) -> Prop | None:
        """Take one of these things in a colour in which the film has none yet, None if it has all."""
        left = [prop for prop in product(things, COLOUR_NAMES) if Prop(*prop) not in self._used]
        if not left:
            return None
        found = Prop(*self.chance.choice(left))
        self._used.add(found)
        return found

    def word(self, words: Sequence[str]) -> str | None:
        """Take one of these words that the film does not have yet, None if it has all."""
        if words not in self._words:
            self._words[words] = self.chance.sample(words, len(words))
        return self._words[words].pop() if self._words[words] else None
