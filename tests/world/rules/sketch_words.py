"""Words of the sketch world, on which the drawn space was trained: things, colours, places, numbers, titles.

The agent knows nothing of the code that draws that world, so the words are repeated here; a test compares the two.
"""

from __future__ import annotations

# fmt: off
THINGS = (
    "fish", "bird", "cat", "dog", "horse", "elephant", "snake", "butterfly", "snail", "turtle", "rabbit", "duck",
    "spider", "tree", "flower", "mushroom", "cactus", "apple", "person", "ghost", "boat", "car", "truck", "bus",
    "train", "bicycle", "plane", "helicopter", "rocket", "balloon", "tractor", "house", "castle", "lighthouse",
    "windmill", "tent", "bridge", "kite", "clock", "umbrella", "cup", "bottle", "chair", "table", "lamp", "key",
    "book", "guitar", "drum", "bell", "hat", "ball", "star", "heart", "crown", "flag", "gift", "candle", "ladder",
    "anchor", "scissors", "shoe", "robot", "cake", "envelope",
)
# fmt: on
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "white", "black")
PLACES = (
    "at sea",
    "in the desert",
    "in the snow",
    "in the forest",
    "in the city",
    "in the mountains",
    "in the meadow",
    "in the room",
)
HOURS = ("by day", "at night")
NUMBERS = ("one", "two", "three", "four", "five")
# fmt: off
TITLES = (
    "HARBOUR", "MORNING", "JOURNEY", "SECRET", "WINTER", "SUMMER", "LANTERN", "RIVER", "THUNDER", "GARDEN",
    "MARKET", "ISLAND", "SILVER", "MIDNIGHT", "RETURN", "PROMISE", "ORCHARD", "SIGNAL", "VOYAGE", "FESTIVAL",
    "COPPER", "ECHO", "MIRROR", "QUARTZ",
)
# fmt: on
_PLURALS = {
    "fish": "fish",
    "scissors": "scissors",
    "person": "people",
    "bus": "buses",
    "butterfly": "butterflies",
    "cactus": "cacti",
}


def counted(count: int, colour: str, thing: str) -> str:
    """Count things of a colour: "a red boat", "three red boats"."""
    if count > 1:
        return f"{NUMBERS[count - 1]} {colour} {_PLURALS.get(thing, thing + 's')}"
    article = "" if thing == "scissors" else "an " if colour[0] in "aeiou" else "a "
    return f"{article}{colour} {thing}"


def title_card(word: str) -> str:
    return f"a title card that says {word}"
