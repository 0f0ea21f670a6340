"""Train the built-in model on images of the sketch world: `python -m tests.sketch.train --minutes 60 --seed 0`.

The loss knows the truth: which caption is true of which image of the batch is computed, not assumed, so a partial
caption ("a boat") is never punished for the other images it fits. Two terms: a multi-positive contrastive loss in
both directions (Radford et al. 2021, section 2.3, with a caption's other true images left out of its negatives), and
a sigmoid loss over all pairs (Zhai et al. 2023, section 3), which makes cosines of different texts comparable. A third
term, from a linear layer that is dropped later, predicts single facts from the image.

Three stages, because an untrained text tower teaches the image tower nothing (measured: after 350 steps the facts of an
image are predicted far better without it). First the image tower alone learns the facts; then the text tower learns to
read against it (as in Zhai et al. 2022, "LiT"); then both learn together.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.spaces.space import import_open_clip
from kinodex.sketch.scenes import (
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
from kinodex.sketch.script import Script
from tests.sketch.captions import (
    ANY_WORD,
    SEVERAL,
    Claim,
    GroupClaim,
    altered,
    claim_about,
    claim_codes,
    full_claim,
    plain_wording,
    random_group,
    random_picture,
    random_scene,
    scene_codes,
    truth,
    truth_of_codes,
    wording,
)
from tests.sketch.export_towers import export_towers
from tests.sketch.vocabulary import PLACES, plural, with_article

if TYPE_CHECKING:
    import torch

SIDE_PX = 128
STORED_PX = 120
CUT_PX = 112
IMAGE_STAGE_UNTIL, TEXT_STAGE_UNTIL = 0.35, 0.45  # parts of the run: pictures alone, then texts alone, then both
EMBED_DIM = 256
MODEL = {
    "embed_dim": EMBED_DIM,
    "vision_cfg": {"layers": [1, 1, 1, 1], "width": 16, "image_size": SIDE_PX},
    "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": 64, "heads": 4, "layers": 3},
}
PREPROCESS = {
    "size": SIDE_PX,
    "mode": "RGB",
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
    "interpolation": "bicubic",
    "resize_mode": "squash",
}
UNKNOWN_TOKEN = 48000  # a rare word whose row stays zero: it stands for every word that training never meets
CONFIG_NAME, WEIGHTS_NAME = "open_clip_config.json", "open_clip_model.safetensors"


@dataclass(frozen=True)
class Pictures:
    """Training data: scenes, their facts (bool [n, facts]) and pixels (uint8 [n, side, side, 3], mapped)."""

    scenes: list[Scene | TitleCard]
    codes: NDArray[np.int8]
    facts: NDArray[np.bool_]
    pixels: NDArray[np.uint8]
    with_thing: dict[str, list[int]] = field(default_factory=dict)


def scene_number(seed: int, number: int) -> Scene | TitleCard:
    """Make the scene of this number in the training set of this seed."""
    return random_picture(Random(f"{seed}/{number}"))


def _render_range(job: tuple[str, int, int, int, int]) -> None:
    path, seed, total, start, stop = job
    pixels = np.memmap(path, np.uint8, "r+", shape=(total, STORED_PX, STORED_PX, 3))
    for number in range(start, stop):
        pixels[number] = photograph(scene_number(seed, number), number, STORED_PX)


def render(folder: Path, seed: int, total: int, processes: int) -> Pictures:
    """Draw the training set with a few processes, unless `folder` holds it already."""
    path = folder / f"pixels-{seed}-{total}.u8"
    shape = (total, STORED_PX, STORED_PX, 3)
    if not path.exists():
        unfinished = path.with_suffix(".part")
        np.memmap(unfinished, np.uint8, "w+", shape=shape).flush()
        jobs = [(str(unfinished), seed, total, start, min(start + 500, total)) for start in range(0, total, 500)]
        with get_context("spawn").Pool(processes) as pool:
            for _ in pool.imap_unordered(_render_range, jobs):
                pass
        unfinished.rename(path)
    pixels = np.memmap(path, np.uint8, "r", shape=shape)
    scenes = [scene_number(seed, number) for number in range(total)]
    with_thing: dict[str, list[int]] = {thing: [] for thing in THING_NAMES}
    for number, scene in enumerate(scenes):
        for group in scene.groups if isinstance(scene, Scene) else ():
            with_thing[group.thing].append(number)
    codes, claims = scene_codes(scenes), single_facts()
    facts = [truth_of_codes(claims, codes[start : start + 500]).T for start in range(0, total, 500)]
    return Pictures(scenes, codes, np.concatenate(facts), pixels, with_thing)


def single_facts() -> NDArray[np.int8]:
    """List claims of one fact each: things, alone, coloured and counted, places, hours and title words."""
    facts = [Claim(groups=(GroupClaim(thing),)) for thing in THING_NAMES]
    facts += [Claim(groups=(GroupClaim(thing, colour),)) for thing in THING_NAMES for colour in COLOUR_NAMES]
    facts += [Claim(groups=(GroupClaim(thing, count=count),)) for thing in THING_NAMES for count in range(1, 6)]
    facts += [Claim(groups=(GroupClaim(colour=colour),)) for colour in COLOUR_NAMES]
    facts += [Claim(groups=(GroupClaim(count=count),)) for count in range(1, 6)]
    facts += [Claim(place) for place in PLACE_NAMES] + [Claim(night=True), Claim(empty=True)]
    return claim_codes(facts + [Claim(word=word) for word in TITLE_WORDS])


def batch_numbers(pictures: Pictures, size: int, part: float, chance: Random) -> list[int]:
    """Choose the images of a batch.

    Once the text tower trains, most come in clusters that share a thing, so that it learns the colours of the thing.
    """
    numbers: list[int] = []
    for thing in chance.sample(THING_NAMES, size // 12 if part >= IMAGE_STAGE_UNTIL else 0):
        numbers += chance.sample(pictures.with_thing[thing], min(10, len(pictures.with_thing[thing])))
    return numbers + [chance.randrange(len(pictures.scenes)) for _ in range(size - len(numbers))]


def batch_claims(scenes: list[Scene | TitleCard], chance: Random) -> list[Claim]:
    """Make a true claim for each image, near misses of some, and claims of a single word."""
    claims = [claim_about(scene, chance) for scene in scenes]
    misses = [altered(claim, chance) for claim in claims[::3]]
    words = [Claim(groups=(GroupClaim(thing),)) for thing in chance.sample(THING_NAMES, 24)]
    words += [Claim(place) for place in PLACE_NAMES] + [Claim(night=True), Claim(night=False)]
    words += [Claim(word=word) for word in chance.sample(TITLE_WORDS, 6)]
    return claims + misses + words


def with_unknown_words(tokens: torch.Tensor, chance: Random) -> torch.Tensor:
    """Insert words that mean nothing into some of the texts, so that they learn to mean nothing."""
    for row in tokens:
        length = int((row != 0).sum())
        if chance.random() < 0.2 and length < row.shape[0]:
            place = chance.randrange(1, length)
            row[place + 1 : length + 1] = row[place:length].clone()
            row[place] = UNKNOWN_TOKEN
    return tokens


def embed_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Run the text tower over the batch's longest text only (its own forward always pays for the whole context)."""
    import torch

    length = int((tokens != 0).sum(1).max())
    tokens = tokens[:, :length]
    states = model.token_embedding(tokens) + model.positional_embedding[:length]
    states = model.ln_final(model.transformer(states, attn_mask=model.attn_mask[:length, :length]))
    last = states[torch.arange(len(tokens), device=tokens.device), tokens.argmax(-1)]
    vectors: torch.Tensor = last @ model.text_projection
    return vectors


def pixels_for_model(pixels: NDArray[np.uint8], chance: Random, device: torch.device) -> torch.Tensor:
    """Make a batch of model inputs: whole images or a large part of them, a little lighter or darker."""
    import torch
    from torch.nn.functional import interpolate

    batch = torch.from_numpy(pixels).to(device).permute(0, 3, 1, 2).float() / 255
    if chance.random() < 0.5:
        top, left = chance.randrange(STORED_PX - CUT_PX), chance.randrange(STORED_PX - CUT_PX)
        batch = batch[:, :, top : top + CUT_PX, left : left + CUT_PX]
    batch = interpolate(batch, size=SIDE_PX, mode="bilinear")
    batch = batch * (0.92 + 0.16 * torch.rand(len(batch), 1, 1, 1, device=device))
    return ((batch - 0.5) / 0.25).contiguous(memory_format=torch.channels_last)


def loss_of(cosines: torch.Tensor, true: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Compute the loss of `cosines` [texts, images] given the truth of each pair (bool, same shape)."""
    from torch.nn.functional import softplus

    logits = cosines * scale
    total = logits.new_zeros(())
    for side, positive in ((logits, true), (logits.T, true.T)):
        others = side.masked_fill(positive, -1e4).logsumexp(1, keepdim=True)
        weight = positive.float() / positive.sum(1, keepdim=True).clamp(min=1)
        total = total + (softplus(others - side) * weight).sum() / positive.any(1).sum()
    return total + sigmoid_loss(logits + bias, true)


def sigmoid_loss(logits: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """Compute the loss of each pair by itself, summed and divided by the number of true pairs."""
    from torch.nn.functional import softplus

    return softplus(logits.where(~true, -logits)).sum() / true.sum()


def learning_rate(part: float, peak: float) -> float:
    """Compute the rate: warm-up over 3 % of the run, then a cosine down to zero."""
    if part < 0.03:
        return peak * (0.02 + 0.98 * part / 0.03)
    return peak * 0.5 * (1 + float(np.cos(np.pi * min(1.0, (part - 0.03) / 0.97))))


class Trainer:
    """The model, its average over time, and the optimiser."""

    def __init__(self, folder: Path, seed: int, peak: float) -> None:
        import torch

        open_clip = import_open_clip()
        torch.manual_seed(seed)
        folder.mkdir(parents=True, exist_ok=True)
        config = {"model_cfg": MODEL, "preprocess_cfg": PREPROCESS}
        (folder / CONFIG_NAME).write_text(json.dumps(config, indent=2) + "\n")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = open_clip.create_model(f"local-dir:{folder}", load_weights=False, pretrained_image=False)
        self.model = self.model.to(self.device, memory_format=torch.channels_last)
        self.tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
        self.bias = torch.nn.Parameter(torch.tensor(-4.0, device=self.device))
        self.seen_tokens = torch.zeros(49408, dtype=torch.bool)
        self.average = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.peak = peak
        self.reader = torch.nn.Linear(EMBED_DIM, len(single_facts())).to(self.device)
        torch.nn.init.constant_(self.reader.bias, -4.0)
        named = list(self.model.named_parameters())
        matrices = [weight for name, weight in named if weight.ndim > 1 and "embedding" not in name]
        rest = [weight for name, weight in named if weight.ndim < 2 or "embedding" in name]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": 0.05},
                {"params": [*rest, self.bias, *self.reader.parameters()], "weight_decay": 0.0},
            ],
            lr=peak,
            betas=(0.9, 0.98),
        )

    def step(self, data: Pictures, numbers: list[int], part: float, chance: Random) -> tuple[float, float]:
        """Do one optimiser step on these images; returns the loss against the captions and that of the single facts."""
        import torch

        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(part, self.peak)
        with torch.autocast(self.device.type, torch.bfloat16):
            images = self.model.visual(pixels_for_model(data.pixels[numbers], chance, self.device)).float()
        of_facts = sigmoid_loss(self.reader(images), torch.from_numpy(data.facts[numbers]).to(self.device))
        of_captions = images.new_zeros(())
        if part >= IMAGE_STAGE_UNTIL:
            of_captions = self.caption_loss(
                data, numbers, images if part >= TEXT_STAGE_UNTIL else images.detach(), chance
            )
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward([of_captions + of_facts])
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            self.model.logit_scale.clamp_(max=4.2)
            self.model.token_embedding.weight[UNKNOWN_TOKEN] = 0
        return float(of_captions.detach()), float(of_facts.detach())

    def caption_loss(self, data: Pictures, numbers: list[int], images: torch.Tensor, chance: Random) -> torch.Tensor:
        """Compute the loss of new captions of these images, each compared with all of the batch."""
        import torch
        from torch.nn.functional import normalize

        claims = batch_claims([data.scenes[number] for number in numbers], chance)
        tokens = self.tokenizer([wording(claim, chance) for claim in claims])
        self.seen_tokens[tokens.unique()] = True
        tokens = with_unknown_words(tokens, chance).to(self.device)
        true = torch.from_numpy(truth_of_codes(claim_codes(claims), data.codes[numbers])).to(self.device)
        texts = embed_text(self.model, tokens)  # in fp32: attention over short rows is slower in bf16 on CPUs
        cosines = normalize(texts, dim=-1) @ normalize(images, dim=-1).T
        return loss_of(cosines, true, self.model.logit_scale.exp(), self.bias)

    def update_average(self, decay: float) -> None:
        """Move the average towards the model."""
        for name, value in self.model.state_dict().items():
            if value.is_floating_point():
                self.average[name].lerp_(value.detach(), 1 - decay)
            else:
                self.average[name].copy_(value)

    def save(self, folder: Path) -> None:
        """Write the average as fp16 safetensors; rows of words never trained are zero, so they mean nothing."""
        from safetensors.torch import save_file

        weights = {name: value.detach().cpu().clone() for name, value in self.average.items()}
        weights["token_embedding.weight"][~self.seen_tokens] = 0
        half = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
        save_file({name: value.contiguous() for name, value in half.items()}, folder / WEIGHTS_NAME)


def steps_until(minutes: float, steps: int | None) -> Iterator[tuple[int, float]]:
    """Yield step numbers with the finished part of the run: by steps where given (repeatable), else by the clock."""
    started, number = time.monotonic(), 0
    while True:
        part = number / steps if steps else (time.monotonic() - started) / (60 * minutes)
        if part >= 1:
            return
        yield number, part
        number += 1


def main(
    out: Annotated[Path, typer.Option(help="Folder for the weights, their configuration and report.json.")],
    minutes: Annotated[float, typer.Option(help="Length of training by the clock, without the drawing.")] = 60,
    steps: Annotated[int | None, typer.Option(help="Train this many steps instead, whatever they take.")] = None,
    seed: int = 0,
    pictures: Annotated[int, typer.Option(help="Pictures drawn to train on.")] = 60000,
    keep: Annotated[Path | None, typer.Option(help="Folder that keeps the drawn pictures for another run.")] = None,
    batch: int = 128,
    peak: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    threads: Annotated[int, typer.Option(help="CPU threads; fewer than there are cores if others need some.")] = 2,
    save_every_min: Annotated[float, typer.Option(help="Keep the weights so far this often.")] = 8,
    scored: Annotated[int, typer.Option(help="Pictures that each score is taken on.")] = 1000,
    towers: Annotated[bool, typer.Option(help="Export the two towers at the end, to be run without torch.")] = True,
) -> None:
    """Train the built-in model, reload it through open_clip and print its scores on held-out combinations."""
    import torch

    torch.set_num_threads(threads)
    started = time.monotonic()
    trainer, chance = Trainer(out, seed, peak), Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        data = render(keep or Path(folder), seed, pictures, threads)
        rendered = time.monotonic()
        print(f"{pictures} pictures drawn in {rendered - started:.0f} s", flush=True)
        last_saved, number, losses = rendered, 0, []
        for number, part in steps_until(minutes, steps):
            losses.append(trainer.step(data, batch_numbers(data, batch, part, chance), part, chance))
            trainer.update_average(min(0.998, number / (number + 10)))
            if number % 50 == 0:
                captions, facts = np.mean(losses[-50:], axis=0)
                print(
                    f"step {number} part {part:.3f} loss {captions:.3f} facts {facts:.3f} "
                    f"after {time.monotonic() - rendered:.0f} s",
                    flush=True,
                )
            if time.monotonic() - last_saved > 60 * save_every_min:
                last_saved = time.monotonic()
                trainer.save(out)
    trainer.save(out)
    facts = {
        "seed": seed,
        "steps": number + 1,
        "batch": batch,
        "training_pictures": pictures,
        "device": trainer.device.type,
        "threads": threads,
        "drawing_s": round(rendered - started),
        "training_s": round(time.monotonic() - rendered),
        "bytes": (out / WEIGHTS_NAME).stat().st_size,
    }
    if towers:
        export_towers(out)
    report = {**facts, **score(out, pictures=scored)}
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


# Score the built-in model on images whose thing-colour-place combination was never trained on.
#
# The model is loaded through open_clip's own loading, like any checkpoint.

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
    return np.stack([photograph(scene, seed + index, side_px, worn=False) for index, scene in enumerate(scenes)])


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
        picture = photograph(Scene(place, chance.random() < 0.4, (group,)), seed + index, towers.side_px, worn=False)
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
        precision[text] = _share(truth([claim], [everything[index] for index in best])[0])
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


# Degrade images of scenes as in practice: by a codec, a JPEG, a fade, at the model's own size.


def photograph(scene: Scene | TitleCard, seed: int, side_px: int, *, worn: bool = True) -> NDArray[np.uint8]:
    """Draw a scene wide, store it as JPEG and squash it to a square: uint8 [side, side, 3].

    `worn` varies the size, the JPEG quality and the brightness (a fade) at random, for training.
    """
    chance = Random(seed)
    width_px = chance.choice((320, 400, 512)) if worn else 512
    pixels = draw(scene, width_px, width_px * 9 // 16, seed)
    if worn:
        light = chance.uniform(0.35, 1.0) if chance.random() < 0.2 else chance.uniform(0.9, 1.1)
        pixels = np.clip(pixels * light, 0, 255).astype(np.uint8)
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "JPEG", quality=chance.randint(55, 92) if worn else 85)
    with Image.open(stored) as picture:
        return np.asarray(picture.resize((side_px, side_px), Image.Resampling.BICUBIC, reducing_gap=3.0))


# Searches of films with exact truth: claims with the ranges in which they are true, and claims that are true nowhere.
#
# A claim that is true nowhere is one that is true somewhere with a fact changed, so that it is as like as can be. Shots
# that follow each other make one range.

TRIES = 50
"""Claims to try for each search; films that hold too little for `count` searches get fewer."""


def write_searches(films: Mapping[str, Script], count: int, seed: int) -> list[dict[str, Any]]:
    """Write up to `count` searches over films by their file names, every second one of what none of them shows.

    Each is a row of `kinodex.jobs.eval.readers.moments`; of one film it names it, of several it searches all. The
    same arguments give the same.
    """
    chance = Random(f"searches/{'/'.join(films)}/{seed}")
    shots = [shot for script in films.values() for shot in script.shots]
    only = {"video": next(iter(films))} if len(films) == 1 else {}
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for _ in range(TRIES * count):
        absent = len(rows) % 2 == 1
        claim = claim_about(chance.choice(shots).scene, chance)
        claim = altered(claim, chance) if absent else claim
        if claim.word == ANY_WORD or any(group.count == SEVERAL for group in claim.groups):
            continue  # they have no plain wording
        text = plain_wording(claim)
        moments = [[video, *each] for video, script in films.items() for each in _ranges(script, claim)]
        if absent is bool(moments) or text in texts:
            continue
        texts.add(text)
        category = "absent" if absent else "one range" if len(moments) == 1 else "several ranges"
        target = {"absent": True} if absent else {"relevant": moments}
        rows.append({"id": f"{len(rows) + 1:03d}", **only, "text": text, "category": category} | target)
        if len(rows) == count:
            break
    return rows


def _ranges(script: Script, claim: Claim) -> list[tuple[float, float]]:
    """The half-open ranges of a film in which a claim is true, shots that follow each other joined."""
    found: list[tuple[float, float]] = []
    true = truth([claim], [shot.scene for shot in script.shots])[0]
    for shot, is_true in zip(script.shots, true.tolist(), strict=True):
        if is_true and found and found[-1][1] == shot.start_s:
            found[-1] = found[-1][0], shot.end_s
        elif is_true:
            found.append((shot.start_s, shot.end_s))
    return found


if __name__ == "__main__":
    typer.run(main)
