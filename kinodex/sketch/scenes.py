"""Scenes of the sketch world, and the drawing of one as an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from kinodex.sketch.drawings import COLOUR_RGB, FLYING, Rgb, draw_place, sprite

SIDE_OF_SIZE = {"small": 0.25, "medium": 0.37, "large": 0.54}
MIDDLE_X = {"left": 0.2, "middle": 0.5, "right": 0.8}


@dataclass(frozen=True, slots=True)
class Group:
    """One or several of the same thing.

    `position` is "left", "middle" or "right". `lift` from 0 to 1 is its height in its band (ground or sky).
    """

    thing: str
    colour: str
    count: int = 1
    size: str = "medium"
    position: str = "middle"
    lift: float = 0.5
    mirrored: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A place by day or night with up to three groups in it, each at a position of its own."""

    place: str
    night: bool = False
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class TitleCard:
    """A word on a plain card."""

    word: str
    paper: Rgb = (18, 18, 24)
    ink: Rgb = (240, 240, 235)


@dataclass(frozen=True, slots=True)
class Pasted:
    """A sprite and the centre it is pasted at, as fractions of width and height."""

    picture: Image.Image
    x: float
    y: float


def draw(scene: Scene | TitleCard, width_px: int, height_px: int, seed: int) -> NDArray[np.uint8]:
    """Draw a scene: uint8 [height, width, 3]. The same arguments give the same bytes."""
    if isinstance(scene, TitleCard):
        return np.asarray(draw_card(scene, width_px, height_px))
    canvas = draw_place(scene.place, scene.night, width_px, height_px, Random(seed))
    for item in lay_out(scene, width_px, height_px):
        paste(canvas, item)
    return np.asarray(canvas)


def paste(canvas: Image.Image, item: Pasted, shift_x: float = 0.0, shift_y: float = 0.0) -> None:
    """Paste a sprite on the canvas, moved by fractions of the canvas's width and height."""
    left = round((item.x + shift_x) * canvas.width - item.picture.width / 2)
    top = round((item.y + shift_y) * canvas.height - item.picture.height / 2)
    canvas.paste(item.picture, (left, top), item.picture)


def lay_out(scene: Scene, width_px: int, height_px: int) -> list[Pasted]:
    """Place every single thing of a scene; nothing overlaps.

    A lone group has the whole width, two or three share it equally, so many things in a row are drawn smaller.
    """
    aspect = width_px / height_px
    room = aspect / max(1, len(scene.groups))
    items: list[Pasted] = []
    for group in scene.groups:
        side = min(SIDE_OF_SIZE[group.size], 0.96 * room / group.count)
        picture = sprite(
            group.thing, group.colour, max(4, round(side * height_px)), night=scene.night, mirrored=group.mirrored
        )
        y = _height_of(group, side)
        middle = _middle_of(group, scene)
        items.extend(Pasted(picture, x, y) for x in _spread(middle, group.count, side / aspect))
    return items


def _height_of(group: Group, side: float) -> float:
    if group.thing in FLYING:
        return 0.04 + side / 2 + group.lift * 0.28 * (1 - side)
    return 0.96 - side / 2 - group.lift * 0.22 * (1 - side)


def _middle_of(group: Group, scene: Scene) -> float:
    if len(scene.groups) == 1 and group.count > 1:
        return 0.5
    if len(scene.groups) == 2:
        return {"left": 0.26, "middle": 0.5, "right": 0.74}[group.position]
    return MIDDLE_X[group.position]


def _spread(middle: float, count: int, width: float) -> Iterator[float]:
    for number in range(count):
        yield middle + (number - (count - 1) / 2) * width * 1.04


def draw_card(card: TitleCard, width_px: int, height_px: int) -> Image.Image:
    """Draw a title card as an RGB image, its word as wide as the card allows."""
    canvas = Image.new("RGB", (width_px, height_px), card.paper)
    pen = ImageDraw.Draw(canvas)
    font = _font(round(min(height_px * 0.24, 1.25 * width_px / len(card.word))))
    pen.text((width_px / 2, height_px / 2), card.word, fill=card.ink, font=font, anchor="mm")
    margin = height_px * 0.08
    pen.rectangle(
        (margin, margin, width_px - margin, height_px - margin), outline=card.ink, width=max(1, height_px // 120)
    )
    return canvas


@lru_cache(maxsize=64)
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)


# Random scenes: the images that the built-in model is trained and scored on.

CARD_PAINTS = (
    ((18, 18, 24), (240, 240, 235)),
    ((236, 232, 220), (30, 30, 34)),
    ((30, 50, 96), (250, 240, 200)),
    ((120, 28, 32), (250, 236, 220)),
    ((24, 84, 60), (240, 240, 220)),
)


def held_out(thing: str, colour: str, place: str) -> bool:
    """True if this combination is held out of training: one in eleven, spread evenly over the vocabulary."""
    number = (3 * THING_NAMES.index(thing) + 5 * COLOUR_NAMES.index(colour) + 7 * PLACE_NAMES.index(place)) % 11
    return number == 0


def random_group(place: str, position: str, count: int, chance: Random, *, unseen: bool) -> Group:
    """Choose a group whose thing-colour-place combination is held out (`unseen`) or not."""
    while True:
        thing, colour = chance.choice(THING_NAMES), chance.choice(COLOUR_NAMES)
        if held_out(thing, colour, place) == unseen:
            return Group(
                thing, colour, count, chance.choice(tuple(SIZES)), position, chance.random(), chance.random() < 0.5
            )


def random_scene(chance: Random, *, unseen: bool = False) -> Scene:
    """Choose a scene with one to three groups, no thing twice."""
    place, night = chance.choice(PLACE_NAMES), chance.random() < 0.4
    number = chance.choices((1, 2, 3), (62, 28, 10))[0]
    positions = [chance.choice(tuple(POSITIONS))] if number == 1 else ["left", "middle", "right"]
    if number == 2:
        positions = ["left", "right"]
    groups: list[Group] = []
    for position in positions:
        count = 1
        if number < 3 and chance.random() < 0.36:
            count = chance.randint(2, 5 if number == 1 else 3)
        group = random_group(place, position if number > 1 or count == 1 else "middle", count, chance, unseen=unseen)
        if all(other.thing != group.thing for other in groups):
            groups.append(group)
    if len(groups) < number:
        return random_scene(chance, unseen=unseen)
    return Scene(place, night, tuple(groups))


def random_picture(chance: Random) -> Scene | TitleCard:
    """Choose a scene for training: combinations that are not held out, some empty places, some title cards."""
    kind = chance.random()
    if kind < 0.06:
        paper, ink = chance.choice(CARD_PAINTS)
        return TitleCard(chance.choice(TITLE_WORDS), paper, ink)
    if kind < 0.12:
        return Scene(chance.choice(PLACE_NAMES), chance.random() < 0.5)
    return random_scene(chance)


# The vocabulary of the sketch world: every name a picture has, with the other words people use for it.

THINGS: dict[str, tuple[str, ...]] = {
    "fish": ("goldfish",),
    "bird": ("seagull", "gull", "swallow"),
    "cat": ("kitten", "kitty"),
    "dog": ("puppy", "hound"),
    "horse": ("pony", "stallion"),
    "elephant": (),
    "snake": ("serpent",),
    "butterfly": ("moth",),
    "snail": ("slug",),
    "turtle": ("tortoise",),
    "rabbit": ("bunny", "hare"),
    "duck": ("duckling", "goose"),
    "spider": ("tarantula",),
    "tree": ("oak", "leafy tree"),
    "flower": ("daisy", "blossom"),
    "mushroom": ("toadstool",),
    "cactus": (),
    "apple": ("fruit",),
    "person": ("man", "human", "boy", "someone"),
    "ghost": ("phantom", "spook"),
    "boat": ("ship", "sailing boat", "sailboat", "yacht", "sailing ship", "vessel"),
    "car": ("automobile", "motorcar", "sedan"),
    "truck": ("lorry", "van"),
    "bus": ("coach",),
    "train": ("locomotive", "steam engine", "railway engine"),
    "bicycle": ("bike", "cycle", "pushbike"),
    "plane": ("airplane", "aeroplane", "aircraft", "jet"),
    "helicopter": ("chopper",),
    "rocket": ("spaceship", "spacecraft", "missile"),
    "balloon": ("hot air balloon", "hot-air balloon"),
    "tractor": (),
    "house": ("cottage", "home", "hut"),
    "castle": ("fortress", "palace"),
    "lighthouse": ("beacon",),
    "windmill": ("mill",),
    "tent": ("camping tent", "tepee"),
    "bridge": ("suspension bridge",),
    "kite": (),
    "clock": ("alarm clock", "watch"),
    "umbrella": ("parasol",),
    "cup": ("mug", "coffee cup", "teacup"),
    "bottle": ("flask",),
    "chair": ("seat",),
    "table": ("desk",),
    "lamp": ("table lamp", "lampshade"),
    "key": (),
    "book": ("open book", "novel"),
    "guitar": (),
    "drum": ("snare drum",),
    "bell": (),
    "hat": ("top hat",),
    "ball": ("beach ball",),
    "star": (),
    "heart": ("love heart",),
    "crown": (),
    "flag": ("banner",),
    "gift": ("present", "gift box", "parcel"),
    "candle": (),
    "ladder": ("stepladder",),
    "anchor": (),
    "scissors": ("pair of scissors",),
    "shoe": ("boot", "sneaker", "trainer"),
    "robot": ("android",),
    "cake": ("birthday cake",),
    "envelope": ("letter", "mail"),
}

KINDS: dict[str, tuple[str, ...]] = {
    "animal": (
        "fish",
        "bird",
        "cat",
        "dog",
        "horse",
        "elephant",
        "snake",
        "butterfly",
        "snail",
        "turtle",
        "rabbit",
        "duck",
        "spider",
    ),
    "plant": ("tree", "flower", "mushroom", "cactus"),
    "vehicle": ("boat", "car", "truck", "bus", "train", "bicycle", "plane", "helicopter", "rocket", "tractor"),
    "building": ("house", "castle", "lighthouse", "windmill"),
    "instrument": ("guitar", "drum", "bell"),
}

COLOURS: dict[str, tuple[str, ...]] = {
    "red": ("crimson", "scarlet"),
    "orange": (),
    "yellow": ("golden",),
    "green": ("emerald",),
    "blue": ("navy",),
    "purple": ("violet",),
    "pink": ("rose",),
    "brown": ("chestnut",),
    "white": ("snow-white",),
    "black": ("jet black",),
}

PLACES: dict[str, tuple[str, ...]] = {
    "sea": (
        "at sea",
        "on the sea",
        "at the sea",
        "in the sea",
        "over the sea",
        "on the water",
        "on the ocean",
        "in the ocean",
        "on the open sea",
        "by the sea",
        "among the waves",
    ),
    "desert": (
        "in the desert",
        "over the desert",
        "in a desert",
        "among the dunes",
        "on the sand",
        "in a sandy desert",
        "between sand dunes",
    ),
    "snow": (
        "in the snow",
        "on the snow",
        "in a snowy landscape",
        "in winter",
        "on a snowy field",
        "over the snow",
        "in a snowfall",
        "on snow and ice",
    ),
    "forest": (
        "in the forest",
        "in the woods",
        "in a wood",
        "among the pines",
        "in a woodland",
        "in a forest",
        "over the forest",
    ),
    "city": (
        "in the city",
        "in town",
        "in a city street",
        "among skyscrapers",
        "over the city",
        "downtown",
        "in front of tall buildings",
        "on the street",
    ),
    "mountains": (
        "in the mountains",
        "among the mountains",
        "over the mountains",
        "in front of the peaks",
        "by rocky mountains",
        "in the alps",
    ),
    "meadow": (
        "in the meadow",
        "on a meadow",
        "in a field",
        "on the grass",
        "in the grass",
        "over green hills",
        "in the countryside",
        "over the meadow",
    ),
    "room": (
        "in the room",
        "in a room",
        "indoors",
        "inside a room",
        "in a living room",
        "inside the house",
        "on the carpet",
    ),
}
PLACE_NOUNS: dict[str, tuple[str, ...]] = {
    "sea": ("sea", "ocean", "water", "waves"),
    "desert": ("desert", "dunes", "sand"),
    "snow": ("snow", "winter landscape", "snowy field"),
    "forest": ("forest", "woods", "woodland"),
    "city": ("city", "town", "street", "skyline"),
    "mountains": ("mountains", "rocky peaks", "mountain range"),
    "meadow": ("meadow", "field", "grass", "grassland"),
    "room": ("room", "living room", "indoor scene"),
}

NIGHT = (
    "at night",
    "by night",
    "in the dark",
    "after dark",
    "under the moon",
    "in the moonlight",
    "at nighttime",
    "in the night",
    "under the stars",
    "at midnight",
)
DAY = ("by day", "in the daytime", "in daylight", "during the day", "in bright daylight", "at noon")
NUMBERS = ("no", "one", "two", "three", "four", "five")
SIZES: dict[str, tuple[str, ...]] = {
    "small": ("small", "little", "tiny"),
    "medium": (),
    "large": ("large", "big", "huge", "giant"),
}
POSITIONS: dict[str, tuple[str, ...]] = {
    "left": ("on the left", "at the left", "to the left"),
    "middle": ("in the middle", "in the centre"),
    "right": ("on the right", "at the right", "to the right"),
}

TITLE_WORDS = (
    "HARBOUR",
    "MORNING",
    "JOURNEY",
    "SECRET",
    "WINTER",
    "SUMMER",
    "LANTERN",
    "RIVER",
    "THUNDER",
    "GARDEN",
    "MARKET",
    "ISLAND",
    "SILVER",
    "MIDNIGHT",
    "RETURN",
    "PROMISE",
    "ORCHARD",
    "SIGNAL",
    "VOYAGE",
    "FESTIVAL",
    "COPPER",
    "ECHO",
    "MIRROR",
    "QUARTZ",
)

COLOUR_NAMES = tuple(COLOUR_RGB)
THING_NAMES = tuple(THINGS)
PLACE_NAMES = tuple(PLACES)
_PLURALS = {
    "fish": "fish",
    "scissors": "scissors",
    "person": "people",
    "man": "men",
    "bus": "buses",
    "house": "houses",
    "butterfly": "butterflies",
    "cactus": "cacti",
    "aircraft": "aircraft",
    "someone": "people",
    "pair of scissors": "pairs of scissors",
    "goose": "geese",
    "bunny": "bunnies",
    "kitty": "kitties",
    "puppy": "puppies",
    "pony": "ponies",
    "lorry": "lorries",
    "daisy": "daisies",
    "beach": "beaches",
    "torch": "torches",
    "coach": "coaches",
    "watch": "watches",
    "fortress": "fortresses",
    "mail": "mail",
    "gift box": "gift boxes",
    "spacecraft": "spacecraft",
    "flask": "flasks",
    "goldfish": "goldfish",
}


def plural(noun: str) -> str:
    """Return the plural of a noun of the vocabulary."""
    return _PLURALS.get(noun, noun + "s")


def with_article(phrase: str) -> str:
    """Put "a" or "an" before a phrase, or nothing where the noun is a plural or a pronoun."""
    if phrase.split()[-1] in ("scissors", "someone", "mail") and not phrase.startswith("pair"):
        return phrase
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


# Claims of captions, and the scenes of which they are true.
#
# Scenes and claims become rows of small integers, so that the truth of thousands of pairs is a few array operations.
# -1 means "there is none" in a scene and "anything will do" in a claim.

ANY_WORD = "*"
SEVERAL = 6
_NOUNS = {noun: code for code, noun in enumerate((*THING_NAMES, *KINDS))}
_COLOURS = {colour: code for code, colour in enumerate(COLOUR_NAMES)}
_PLACES = {place: code for code, place in enumerate(PLACE_NAMES)}
_SIZES = {size: code for code, size in enumerate(SIZES)}
_POSITIONS = {position: code for code, position in enumerate(POSITIONS)}
_WORDS = {word: code for code, word in enumerate((*TITLE_WORDS, ANY_WORD))}


@dataclass(frozen=True, slots=True)
class GroupClaim:
    """A group that a caption mentions; None leaves a property open. `count` of `SEVERAL` means two or more.

    `noun` is a thing or one of the wider kinds ("animal").
    """

    noun: str | None = None
    colour: str | None = None
    count: int | None = None
    size: str | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a caption: the place, the hour, up to two groups, that nothing is there, or a card's word."""

    place: str | None = None
    night: bool | None = None
    groups: tuple[GroupClaim, ...] = ()
    empty: bool = False
    word: str | None = None


def truth(claims: Sequence[Claim], scenes: Sequence[Scene | TitleCard]) -> NDArray[np.bool_]:
    """Compute which claims are true of which scenes: bool [claims, scenes]."""
    return truth_of_codes(claim_codes(claims), scene_codes(scenes))


def scene_codes(scenes: Sequence[Scene | TitleCard]) -> NDArray[np.int8]:
    """Encode scenes as rows: place, night, word, then thing, colour, count, size, position of up to three groups."""
    return np.array([_scene_row(scene) for scene in scenes], np.int8).reshape(-1, 18)


def claim_codes(claims: Sequence[Claim]) -> NDArray[np.int8]:
    """Encode claims as rows: place, night, word, empty; noun, colour, count, size, position of up to two groups."""
    return np.array([_claim_row(claim) for claim in claims], np.int8).reshape(-1, 14)


def truth_of_codes(claims: NDArray[np.int8], scenes: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Compute `truth` for encoded rows: bool [claims, scenes]."""
    ask, see = claims[:, None], scenes[None]
    place = (ask[..., 0] < 0) | (ask[..., 0] == see[..., 0])
    night = (ask[..., 1] < 0) | (ask[..., 1] == see[..., 1])
    any_word = (ask[..., 2] == _WORDS[ANY_WORD]) & (see[..., 2] >= 0)
    word = (ask[..., 2] < 0) | (ask[..., 2] == see[..., 2]) | any_word
    empty = (ask[..., 3] < 0) | ((see[..., 3] < 0) & (see[..., 2] < 0))
    whole: NDArray[np.bool_] = place & night & word & empty
    for first in (4, 9):
        found = np.zeros_like(whole)
        for start in (3, 8, 13):
            found |= _matches(ask[..., first : first + 5], see[..., start : start + 5])
        whole &= found | (ask[..., first : first + 5] < 0).all(axis=-1)
    return whole


def _matches(ask: NDArray[np.int8], see: NDArray[np.int8]) -> NDArray[np.bool_]:
    there = see[..., 0] >= 0
    noun: NDArray[np.bool_] = (ask[..., 0] < 0) | _is_a()[ask[..., 0], see[..., 0]]
    same = [(ask[..., column] < 0) | (ask[..., column] == see[..., column]) for column in (1, 3, 4)]
    count = (ask[..., 2] < 0) | (ask[..., 2] == see[..., 2]) | ((ask[..., 2] == SEVERAL) & (see[..., 2] > 1))
    found: NDArray[np.bool_] = there & noun & count & same[0] & same[1] & same[2]
    return found


def _is_a() -> NDArray[np.bool_]:
    table = np.zeros((len(_NOUNS), len(THING_NAMES)), bool)
    for thing in THING_NAMES:
        table[_NOUNS[thing], _NOUNS[thing]] = True
    for kind, things in KINDS.items():
        for thing in things:
            table[_NOUNS[kind], _NOUNS[thing]] = True
    return table


def _scene_row(scene: Scene | TitleCard) -> list[int]:
    if isinstance(scene, TitleCard):
        return [-1, -1, _WORDS.get(scene.word, -1)] + [-1] * 15
    row = [_PLACES[scene.place], int(scene.night), -1]
    for group in scene.groups:
        row += [
            _NOUNS[group.thing],
            _COLOURS[group.colour],
            group.count,
            _SIZES[group.size],
            _POSITIONS[group.position],
        ]
    return row + [-1] * (18 - len(row))


def _claim_row(claim: Claim) -> list[int]:
    row = [
        -1 if claim.place is None else _PLACES[claim.place],
        -1 if claim.night is None else int(claim.night),
        -1 if claim.word is None else _WORDS[claim.word],
        1 if claim.empty else -1,
    ]
    for group in claim.groups:
        row += [
            -1 if group.noun is None else _NOUNS[group.noun],
            -1 if group.colour is None else _COLOURS[group.colour],
            -1 if group.count is None else group.count,
            -1 if group.size is None else _SIZES[group.size],
            -1 if group.position is None else _POSITIONS[group.position],
        ]
    return row + [-1] * (14 - len(row))
