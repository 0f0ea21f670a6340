"""Export of whole text towers: half precision where it is near enough, and the check that guards it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.arrays import ArrayFile
from kinodex.index.spaces.export_text import CHECK_TEXTS, MIN_COSINE, VECTOR_TEXTS, export_text_tower
from kinodex.index.spaces.export_tokenizer import export_tokenizer
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.text_tower import TextSettings, TextTower
from kinodex.index.spaces.tokenizer import Tokenizer
from kinodex.index.spaces.towers import SpaceTowers, TowerFacts, write_towers
from tests.support.late import late
from tests.support.models.real_models import real_model
from tests.support.models.text_tokenizers import KINDS, same_ids, write_sentencepiece, write_tokenizer

open_clip, torch = late(import_open_clip), late("torch")
VISION = {"image_size": 32, "layers": 1, "width": 32, "patch_size": 32, "head_width": 32}
WORDS, FEW_WORDS, FEW_MERGES = 49408, 1514, 1000
TEXT = {"context_length": 24, "width": 32, "heads": 2, "layers": 2}


@pytest.fixture(scope="module")
def few_words(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tokenizer of open_clip with the first thousand of its merges: to write all takes half a second a tower."""
    merges = gzip.decompress(Path(open_clip.tokenizer.default_bpe()).read_bytes()).splitlines()
    path = tmp_path_factory.mktemp("words") / "merges.txt.gz"
    path.write_bytes(gzip.compress(b"\n".join(merges[: FEW_MERGES + 1])))
    return open_clip.tokenizer.SimpleTokenizer(str(path), context_length=24)


def space_of(
    tokenizer: Any = None,
    *,
    custom: bool = False,
    attributes: Any = (),
    quick_gelu: bool = False,
    **options: Any,
) -> Space:
    """Make a space of a small model with random weights, none of them 0 or 1, whose text tower has these options.

    Its tokenizer is that of open_clip unless another is given.
    """
    tokenizer = tokenizer or open_clip.tokenizer.SimpleTokenizer(context_length=24)
    text = TEXT | {"vocab_size": tokenizer.vocab_size} | options
    kind = open_clip.model.CustomTextCLIP if custom else open_clip.model.CLIP
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        model = kind(32, dict(VISION), text, quick_gelu=quick_gelu).eval()
        for weight in model.parameters():
            weight.data += 0.2 * torch.randn_like(weight)
    for name, value in dict(attributes).items():
        setattr(model.text, name, value)
    return Space(Fingerprint("small", "", "", "", 32), model, None, tokenizer, torch.device("cpu"))


def opened(space: Space, facts: TowerFacts, folder: Path) -> TextTower:
    write_towers(folder, SpaceTowers(space.fingerprint, facts))
    return TextTower.open(folder)


@pytest.mark.slow
def test_an_exported_tower_embeds_as_the_space_does(tmp_path):
    space = space_of()
    facts = export_text_tower(space, tmp_path)
    assert (facts.samples, sorted(facts.files)) == (
        len(VECTOR_TEXTS),
        ["graphs.safetensors", "text.safetensors", "tokenizer.json", "vocabulary.safetensors"],
    )
    assert facts.least_cosine >= MIN_COSINE
    assert ArrayFile(tmp_path / "text.safetensors").map("words").dtype == np.float16
    tower, texts = opened(space, facts, tmp_path), ["a red boat", *CHECK_TEXTS[40:90]]
    ours, theirs = tower.embed_text(texts), space.embed_text(texts)
    np.testing.assert_allclose((ours * theirs).sum(1), 1.0, atol=1e-5)
    assert tower.settings == TextSettings.from_json(json.loads(json.dumps(facts.settings)))


def squared_but_in_a_trace(_module: Any, _given: Any, states: Any) -> Any:
    return states if torch.jit.is_tracing() else states * states


@pytest.mark.slow
def test_a_tower_that_gives_other_vectors_is_refused_with_text_and_figure(tmp_path, few_words):
    space = space_of(few_words)
    space.text_parts()[0].ln_final.register_forward_hook(squared_but_in_a_trace)
    with pytest.raises(ExportRefused, match=r"text tower of small .*its vector of '.*' has a cosine of -?0\.\d{5} to"):
        export_text_tower(space, tmp_path)


@pytest.mark.slow
def test_a_text_encoder_of_transformers_is_cut_into_parts_and_takes_texts_without_padding(tmp_path):
    space = load_space(f"local-dir:{real_model('photo')}", device="cpu", towers="text")
    tower = opened(space, export_text_tower(space, tmp_path), tmp_path)
    assert tower.settings.trims and len(tower.settings.parts) > 1
    texts = ["a dog", "two dogs run along the beach at sunset " * 12, *CHECK_TEXTS[40:60]]
    expected = space.embed_text(texts)
    alone = np.concatenate([TextTower.open(tmp_path).embed_text([text]) for text in texts[:2]])
    np.testing.assert_allclose((alone * expected[:2]).sum(1), 1.0, atol=1e-4)
    np.testing.assert_allclose((tower.embed_text(texts) * expected).sum(1), 1.0, atol=1e-4)


@pytest.mark.slow
def test_a_tower_that_torch_cannot_export_is_refused_in_a_line(tmp_path, few_words):
    space = space_of(few_words)
    space.text_parts()[0].ln_final.register_forward_hook(lambda _module, _given, states: torch.fft.fft(states).real)
    with pytest.raises(ExportRefused, match=r"^torch cannot export the text tower of small: \w+: .*fft") as error:
        export_text_tower(space, tmp_path)
    assert "\n" not in str(error.value)


# Export of tokenizers of every kind: the same ids as open_clip's for all texts of the check, or a refusal.

TEXTS = [*CHECK_TEXTS, "catfish", "a catfish and catfish.", "catfishcatfish ▁▁▁ dog▁▁▁▁", "x   y    z"]


def differing(original, folder) -> list[str]:
    ours = Tokenizer(folder, export_tokenizer(original, folder))
    together = same_ids(ours(TEXTS).tolist(), original(TEXTS).tolist(), TEXTS)
    alone = [text for text in TEXTS[::5] if ours([text]).tolist() != original([text]).tolist()]
    return together + alone


@pytest.mark.slow
@pytest.mark.parametrize("clean", ["whitespace", "canonicalize"])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_transformers_tokenizers(tmp_path, kind, clean):
    write_tokenizer(tmp_path / "given", kind)
    original = open_clip.tokenizer.HFTokenizer(str(tmp_path / "given"), context_length=24, clean=clean)
    assert differing(original, tmp_path) == []


def test_tokenizers_that_are_refused(tmp_path):
    write_tokenizer(tmp_path / "given", "wordpiece")
    write_sentencepiece(tmp_path / "python", "SiglipTokenizer", "unigram")
    of_transformers = open_clip.tokenizer.HFTokenizer
    other = open_clip.tokenizer.SimpleTokenizer()
    other.clean_fn = str.upper
    refused: dict[str, Any] = {
        "at random": open_clip.tokenizer.SimpleTokenizer(reduction_mask="random"),
        "a dict, which is not covered": {},
        "the mode 'clips'": of_transformers(str(tmp_path / "given"), tokenizer_mode="clips"),
        "cleans texts by upper": other,
        "a SiglipTokenizer, which transformers computes in Python": of_transformers(
            str(tmp_path / "python"), context_length=24
        ),
    }
    for says, tokenizer in refused.items():
        with pytest.raises(ExportRefused, match=says) as error:
            export_tokenizer(tokenizer, tmp_path)
        assert "\n" not in str(error.value)


# Text transformers with every option of open_clip: the vectors of torch.

ALL_NORMS = {"qk_norm": True, "scale_heads": True, "scale_attn_inner": True, "scale_attn": True, "scale_fc": True}
TWO_WAYS = {"no_causal_mask": True, "pool_type": "last", "proj_bias": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "quick gelu and layer scale": {"quick_gelu": True, "ls_init_value": 0.3, "mlp_ratio": 2.5},
    "as SigLIP": TWO_WAYS | {"act_kwargs": {"approximate": "tanh"}, "norm_kwargs": {"eps": 1e-3}},
    "pooled at the end token": {"pool_type": "eos", "eos_id": FEW_WORDS - 1},
    "no projection": {"proj_type": "none", "layers": 1},
    "class token, both ways": {"embed_cls": True, "custom": True, "no_causal_mask": True},
    "class token, right mask, all norms": ALL_NORMS
    | {"embed_cls": True, "custom": True, "attributes": {"correct_cls_mask": True}},
    "padding hidden": TWO_WAYS | {"custom": True, "pool_type": "first", "attributes": {"use_pad_mask": True}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPTIONS)
def test_vectors_are_those_of_torch(tmp_path, kind, few_words):
    space = space_of(few_words, **OPTIONS[kind])
    tower = opened(space, export_text_tower(space, tmp_path), tmp_path)
    texts = ["a red boat", "", "two dogs " * 30]
    expected = space.embed_text(texts)
    np.testing.assert_allclose((tower.embed_text(texts) * expected).sum(1), 1.0, atol=1e-4)
    alone = np.concatenate([tower.embed_text([text]) for text in texts])
    np.testing.assert_allclose((alone * expected).sum(1), 1.0, atol=1e-4)
