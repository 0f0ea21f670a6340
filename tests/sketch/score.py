"""Score the built-in model on images of the sketch world whose combinations were held out of its training."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.spaces.import_torch import import_open_clip
from tests.sketch.captions import Claim, GroupClaim, full_claim, is_true, plain_wording, random_group, random_scene
from tests.sketch.vocabulary import PLACES, plural, with_article
from tests.world.sketch.scenes import (
    CARD_PAINTS,
    COLOUR_NAMES,
    NUMBERS,
    PLACE_NAMES,
    THING_NAMES,
    TITLE_WORDS,
    Group,
    Scene,
    TitleCard,
    draw,
)

FloatArray = NDArray[np.float32]

PARAPHRASES: tuple[tuple[str, Claim], ...] = (
    ("a ship at sea", Claim("sea", groups=(GroupClaim("boat"),))),
    ("a red house in the snow at night", Claim("snow", True, (GroupClaim("house", "red"),))),
    ("sailing boat on the open ocean, yellow", Claim("sea", groups=(GroupClaim("boat", "yellow"),))),
    ("a bunny hopping through the grass", Claim("meadow", groups=(GroupClaim("rabbit"),))),
    ("somebody's blue automobile parked downtown", Claim("city", groups=(GroupClaim("car", "blue"),))),
    ("green lorry between sand dunes", Claim("desert", groups=(GroupClaim("truck", "green"),))),
    ("an aeroplane flying over the mountains after dark", Claim("mountains", True, (GroupClaim("plane"),))),
    ("a pink birthday cake inside a living room", Claim("room", groups=(GroupClaim("cake", "pink"),))),
    ("a spaceship above the woods", Claim("forest", groups=(GroupClaim("rocket"),))),
    ("purple mug", Claim(groups=(GroupClaim("cup", "purple"),))),
    ("three kittens", Claim(groups=(GroupClaim("cat", count=3),))),
    ("two black bikes in town", Claim("city", groups=(GroupClaim("bicycle", "black", 2),))),
    ("an empty winter landscape", Claim("snow", empty=True)),
    ("a deserted street at night", Claim("city", True, empty=True)),
    ("the screen shows the word harbour", Claim(word="HARBOUR")),
    ("a steam engine next to a lighthouse", Claim(groups=(GroupClaim("train"), GroupClaim("lighthouse")))),
    ("a golden crown and a blue guitar", Claim(groups=(GroupClaim("crown", "yellow"), GroupClaim("guitar", "blue")))),
    ("red boat sea", Claim("sea", groups=(GroupClaim("boat", "red"),))),
    ("what colour is the kite over the desert?", Claim("desert", groups=(GroupClaim("kite"),))),
    ("an elephant walking in the snow", Claim("snow", groups=(GroupClaim("elephant"),))),
    ("a person with a parasol", Claim(groups=(GroupClaim("person"), GroupClaim("umbrella")))),
    ("white tortoise on the beach sand", Claim("desert", groups=(GroupClaim("turtle", "white"),))),
    ("a big orange balloon floating above the sea", Claim("sea", groups=(GroupClaim("balloon", "orange"),))),
    ("a fortress in the mountains under the moon", Claim("mountains", True, (GroupClaim("castle"),))),
)


@dataclass(frozen=True)
class Towers:
    """A loaded model: embeds images and texts as unit vectors."""

    model: Any
    tokenizer: Any
    mean: FloatArray
    std: FloatArray
    side_px: int

    def embed_pictures(self, pictures: NDArray[np.uint8]) -> FloatArray:
        """Embed uint8 [n, side, side, 3] as [n, dim]."""
        import torch

        ready = (pictures.astype(np.float32) / 255 - self.mean) / self.std
        parts = []
        with torch.inference_mode():
            for start in range(0, len(ready), 128):
                batch = torch.from_numpy(np.ascontiguousarray(ready[start : start + 128].transpose(0, 3, 1, 2)))
                parts.append(self.model.encode_image(batch, normalize=True).numpy())
        return np.concatenate(parts)

    def embed_texts(self, texts: list[str]) -> FloatArray:
        """Embed texts as [n, dim]."""
        import torch

        with torch.inference_mode():
            vectors: FloatArray = self.model.encode_text(self.tokenizer(texts), normalize=True).numpy()
        return vectors


def load_towers(folder: Path) -> Towers:
    """Load the model in `folder` by open_clip's ``local-dir:`` schema, in fp32 on the CPU."""
    open_clip = import_open_clip()
    model, _, _ = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    settings = open_clip.get_model_preprocess_cfg(model)
    side = settings["size"]
    return Towers(
        model.eval(),
        open_clip.get_tokenizer(f"local-dir:{folder}"),
        np.array(settings["mean"], np.float32),
        np.array(settings["std"], np.float32),
        side if isinstance(side, int) else side[0],
    )


def score(folder: Path, *, pictures: int = 1000, seed: int = 977) -> dict[str, Any]:
    """Score held-out combinations: shares from 0 to 1, and for each paraphrase its precision at 5.

    thing, colour and place take one image each with a single thing (text prompts: 65 things, 10 colours, 8 places);
    recall is text-to-image, the full description against `pictures` scenes with one to three groups.
    """
    towers, chance = load_towers(folder), Random(seed)
    singles = [_single(chance) for _ in range(pictures)]
    scenes = [random_scene(chance, unseen=True) for _ in range(pictures)]
    seen = towers.embed_pictures(_photographs(singles, seed, towers.side_px))
    gallery = towers.embed_pictures(_photographs(scenes, seed + pictures, towers.side_px))
    return {
        "pictures": pictures,
        **_attribute_scores(towers, singles, seen),
        **_recall(towers, scenes, gallery),
        "counting_top1": _counting(towers, chance, seed, pictures // 4),
        "title_card_top1": _cards(towers, chance, seed),
        **_paraphrase_scores(towers, scenes, gallery, chance),
    }


def _single(chance: Random) -> Scene:
    place = chance.choice(PLACE_NAMES)
    position = chance.choice(("left", "middle", "right"))
    return Scene(place, chance.random() < 0.4, (random_group(place, position, 1, chance, unseen=True),))


def _photographs(scenes: list[Any], seed: int, side_px: int) -> NDArray[np.uint8]:
    return np.stack([photograph(scene, seed + index, side_px) for index, scene in enumerate(scenes)])


def _attribute_scores(towers: Towers, scenes: list[Scene], seen: FloatArray) -> dict[str, float]:
    things = towers.embed_texts([with_article(thing) for thing in THING_NAMES])
    places = towers.embed_texts([PLACES[place][0] for place in PLACE_NAMES])
    hours = towers.embed_texts(["by day", "at night"])
    thing_hit = [
        THING_NAMES[best] == scene.groups[0].thing
        for best, scene in zip((seen @ things.T).argmax(1), scenes, strict=True)
    ]
    place_hit = [
        PLACE_NAMES[best] == scene.place for best, scene in zip((seen @ places.T).argmax(1), scenes, strict=True)
    ]
    hour_hit = [bool(best) == scene.night for best, scene in zip((seen @ hours.T).argmax(1), scenes, strict=True)]
    colour_hit = []
    for vector, scene in zip(seen, scenes, strict=True):
        thing = scene.groups[0].thing
        prompts = towers.embed_texts([with_article(f"{colour} {thing}") for colour in COLOUR_NAMES])
        colour_hit.append(COLOUR_NAMES[int((prompts @ vector).argmax())] == scene.groups[0].colour)
    return {
        "thing_top1": _share(thing_hit),
        "colour_top1": _share(colour_hit),
        "place_top1": _share(place_hit),
        "night_top1": _share(hour_hit),
    }


def _recall(towers: Towers, scenes: list[Scene], gallery: FloatArray) -> dict[str, float]:
    texts = towers.embed_texts([plain_wording(full_claim(scene)) for scene in scenes])
    scores = texts @ gallery.T
    rank = (scores > scores.diagonal()[:, None]).sum(1)
    return {"text_to_image_recall_at_1": _share(rank < 1), "text_to_image_recall_at_10": _share(rank < 10)}


def _counting(towers: Towers, chance: Random, seed: int, pictures: int) -> float:
    hits = []
    for index in range(pictures):
        place, count = chance.choice(PLACE_NAMES), chance.randint(1, 5)
        group = random_group(place, "middle", count, chance, unseen=True)
        picture = photograph(Scene(place, chance.random() < 0.4, (group,)), seed + index, towers.side_px)
        prompts = [f"one {group.thing}", *(f"{NUMBERS[number]} {plural(group.thing)}" for number in range(2, 6))]
        scores = towers.embed_texts(prompts) @ towers.embed_pictures(picture[None])[0]
        hits.append(int(scores.argmax()) + 1 == count)
    return _share(hits)


def _cards(towers: Towers, chance: Random, seed: int) -> float:
    cards = [TitleCard(word, *chance.choice(CARD_PAINTS)) for word in TITLE_WORDS for _ in range(2)]
    seen = towers.embed_pictures(_photographs(cards, seed, towers.side_px))
    prompts = towers.embed_texts([plain_wording(Claim(word=word)) for word in TITLE_WORDS])
    best = (seen @ prompts.T).argmax(1)
    return _share([TITLE_WORDS[index] == card.word for index, card in zip(best, cards, strict=True)])


def _paraphrase_scores(towers: Towers, scenes: list[Scene], gallery: FloatArray, chance: Random) -> dict[str, Any]:
    """Compute the precision at 5 of each paraphrase, after five images it is true of have joined the gallery."""
    precision = {}
    for text, claim in PARAPHRASES:
        added = [_scene_of(claim, chance) for _ in range(5)]
        everything = [*scenes, *added]
        vectors = np.concatenate([gallery, towers.embed_pictures(_photographs(added, 31, towers.side_px))])
        best = np.argsort(-(vectors @ towers.embed_texts([text])[0]))[:5]
        precision[text] = _share([is_true(claim, everything[index]) for index in best])
    return {"paraphrase_precision_at_5": _share(list(precision.values())), "paraphrases": precision}


def _scene_of(claim: Claim, chance: Random) -> Scene | TitleCard:
    """Make a scene that the claim is true of, everything that it leaves open chosen at random."""
    if claim.word is not None:
        return TitleCard(claim.word, *chance.choice(CARD_PAINTS))
    positions = ("middle",) if len(claim.groups) == 1 else ("left", "right")
    groups = tuple(
        Group(
            group.noun or chance.choice(THING_NAMES),
            group.colour or chance.choice(COLOUR_NAMES),
            group.count or 1,
            chance.choice(("small", "medium", "large")),
            position,
            chance.random(),
            chance.random() < 0.5,
        )
        for group, position in zip(claim.groups, positions, strict=False)
    )
    night = chance.random() < 0.4 if claim.night is None else claim.night
    return Scene(claim.place or chance.choice(PLACE_NAMES), night, groups)


def _share(hits: Any) -> float:
    return round(float(np.mean(hits)), 4)


def photograph(scene: Scene | TitleCard, seed: int, side_px: int) -> NDArray[np.uint8]:
    """Draw a scene wide, store it as JPEG and squash it to a square: uint8 [side, side, 3]."""
    stored = io.BytesIO()
    Image.fromarray(draw(scene, 512, 288, seed)).save(stored, "JPEG", quality=85)
    with Image.open(stored) as picture:
        return np.asarray(picture.resize((side_px, side_px), Image.Resampling.BICUBIC, reducing_gap=3.0))
