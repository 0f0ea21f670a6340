"""The words that people use for what is in the sketch world: those of its films first, then others for the same."""

from __future__ import annotations

from tests.world.sketch import scenes

# fmt: off
THINGS: dict[str, tuple[str, ...]] = {
    "fish": ("goldfish",), "bird": ("seagull", "gull", "swallow"), "cat": ("kitten", "kitty"),
    "dog": ("puppy", "hound"), "horse": ("pony", "stallion"), "elephant": (), "snake": ("serpent",),
    "butterfly": ("moth",), "snail": ("slug",), "turtle": ("tortoise",), "rabbit": ("bunny", "hare"),
    "duck": ("duckling", "goose"), "spider": ("tarantula",), "tree": ("oak", "leafy tree"),
    "flower": ("daisy", "blossom"), "mushroom": ("toadstool",), "cactus": (), "apple": ("fruit",),
    "person": ("man", "human", "boy", "someone"), "ghost": ("phantom", "spook"),
    "boat": ("ship", "sailing boat", "sailboat", "yacht", "sailing ship", "vessel"),
    "car": ("automobile", "motorcar", "sedan"), "truck": ("lorry", "van"), "bus": ("coach",),
    "train": ("locomotive", "steam engine", "railway engine"), "bicycle": ("bike", "cycle", "pushbike"),
    "plane": ("airplane", "aeroplane", "aircraft", "jet"), "helicopter": ("chopper",),
    "rocket": ("spaceship", "spacecraft", "missile"), "balloon": ("hot air balloon", "hot-air balloon"),
    "tractor": (), "house": ("cottage", "home", "hut"), "castle": ("fortress", "palace"), "lighthouse": ("beacon",),
    "windmill": ("mill",), "tent": ("camping tent", "tepee"), "bridge": ("suspension bridge",), "kite": (),
    "clock": ("alarm clock", "watch"), "umbrella": ("parasol",), "cup": ("mug", "coffee cup", "teacup"),
    "bottle": ("flask",), "chair": ("seat",), "table": ("desk",), "lamp": ("table lamp", "lampshade"), "key": (),
    "book": ("open book", "novel"), "guitar": (), "drum": ("snare drum",), "bell": (), "hat": ("top hat",),
    "ball": ("beach ball",), "star": (), "heart": ("love heart",), "crown": (), "flag": ("banner",),
    "gift": ("present", "gift box", "parcel"), "candle": (), "ladder": ("stepladder",), "anchor": (),
    "scissors": ("pair of scissors",), "shoe": ("boot", "sneaker", "trainer"), "robot": ("android",),
    "cake": ("birthday cake",), "envelope": ("letter", "mail"),
}
KINDS: dict[str, tuple[str, ...]] = {
    "animal": (
        "fish", "bird", "cat", "dog", "horse", "elephant", "snake", "butterfly", "snail", "turtle", "rabbit", "duck",
        "spider",
    ),
    "plant": ("tree", "flower", "mushroom", "cactus"),
    "vehicle": ("boat", "car", "truck", "bus", "train", "bicycle", "plane", "helicopter", "rocket", "tractor"),
    "building": ("house", "castle", "lighthouse", "windmill"), "instrument": ("guitar", "drum", "bell"),
}
COLOURS: dict[str, tuple[str, ...]] = {
    "red": ("crimson", "scarlet"), "orange": (), "yellow": ("golden",), "green": ("emerald",), "blue": ("navy",),
    "purple": ("violet",), "pink": ("rose",), "brown": ("chestnut",), "white": ("snow-white",),
    "black": ("jet black",),
}
PLACES: dict[str, tuple[str, ...]] = {
    "sea": (
        "at sea", "on the sea", "at the sea", "in the sea", "over the sea", "on the water", "on the ocean",
        "in the ocean", "on the open sea", "by the sea", "among the waves",
    ),
    "desert": (
        "in the desert", "over the desert", "in a desert", "among the dunes", "on the sand", "in a sandy desert",
        "between sand dunes",
    ),
    "snow": (
        "in the snow", "on the snow", "in a snowy landscape", "in winter", "on a snowy field", "over the snow",
        "in a snowfall", "on snow and ice",
    ),
    "forest": (
        "in the forest", "in the woods", "in a wood", "among the pines", "in a woodland", "in a forest",
        "over the forest",
    ),
    "city": (
        "in the city", "in town", "in a city street", "among skyscrapers", "over the city", "downtown",
        "in front of tall buildings", "on the street",
    ),
    "mountains": (
        "in the mountains", "among the mountains", "over the mountains", "in front of the peaks",
        "by rocky mountains", "in the alps",
    ),
    "meadow": (
        "in the meadow", "on a meadow", "in a field", "on the grass", "in the grass", "over green hills",
        "in the countryside", "over the meadow",
    ),
    "room": (
        "in the room", "in a room", "indoors", "inside a room", "in a living room", "inside the house",
        "on the carpet",
    ),
}
PLACE_NOUNS: dict[str, tuple[str, ...]] = {
    "sea": ("sea", "ocean", "water", "waves"), "desert": ("desert", "dunes", "sand"),
    "snow": ("snow", "winter landscape", "snowy field"), "forest": ("forest", "woods", "woodland"),
    "city": ("city", "town", "street", "skyline"), "mountains": ("mountains", "rocky peaks", "mountain range"),
    "meadow": ("meadow", "field", "grass", "grassland"), "room": ("room", "living room", "indoor scene"),
}
NIGHT = (
    "at night", "by night", "in the dark", "after dark", "under the moon", "in the moonlight", "at nighttime",
    "in the night", "under the stars", "at midnight",
)
DAY = (
    "by day", "in the daytime", "in daylight", "during the day", "in bright daylight", "at noon",
)
SIZES: dict[str, tuple[str, ...]] = {
    "small": ("small", "little", "tiny"), "medium": (), "large": ("large", "big", "huge", "giant"),
}
POSITIONS: dict[str, tuple[str, ...]] = {
    "left": ("on the left", "at the left", "to the left"), "middle": ("in the middle", "in the centre"),
    "right": ("on the right", "at the right", "to the right"),
}
PLURALS = scenes.PLURALS | {
    "man": "men", "aircraft": "aircraft", "someone": "people", "pair of scissors": "pairs of scissors",
    "goose": "geese", "bunny": "bunnies", "kitty": "kitties", "puppy": "puppies", "pony": "ponies",
    "lorry": "lorries", "daisy": "daisies", "beach": "beaches", "torch": "torches", "coach": "coaches",
    "watch": "watches", "fortress": "fortresses", "mail": "mail", "gift box": "gift boxes",
    "spacecraft": "spacecraft", "flask": "flasks", "goldfish": "goldfish",
}
# fmt: on


def plural(noun: str) -> str:
    """Return the plural of a noun of the vocabulary."""
    return PLURALS.get(noun, noun + "s")


def with_article(phrase: str) -> str:
    """Put "a" or "an" before a phrase, or nothing where the noun is a plural or a pronoun."""
    if phrase.split()[-1] in ("scissors", "someone", "mail") and not phrase.startswith("pair"):
        return phrase
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase
