"""Captions by local models: the right words for the right segment, and confidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from kinodex.pipeline.models.captioner import Captioner, SegmentFrames, _chat, _Likelihoods, load_captioner
from tests.support.models import stage_models as stage_kit


@pytest.fixture(params=["llava", "idefics3"])
def captioner(request, tiny_model) -> Captioner:
    return load_captioner(str(tiny_model(request.param)), "cpu", max_new_tokens=12)


def pictures(count: int, seed: int) -> tuple[Image.Image, ...]:
    random = np.random.default_rng(seed)
    return tuple(Image.fromarray(random.integers(0, 255, (36, 64, 3), dtype=np.uint8)) for _ in range(count))


SEGMENTS = [SegmentFrames(pictures(1, 1), 3.0), SegmentFrames(pictures(4, 2), 10.0), SegmentFrames(pictures(2, 3), 5.0)]


def test_a_batch_says_what_each_segment_alone_says_with_the_confidence_of_transformers(captioner):
    import torch

    together = captioner.caption(SEGMENTS)
    alone = [captioner.caption([segment])[0] for segment in SEGMENTS]
    assert [caption.text for caption in together] == [caption.text for caption in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.confidence == pytest.approx(other.confidence, rel=1e-4)
    assert all(set(caption.text.split()) <= set(stage_kit.WORDS.split()) for caption in together)
    assert captioner.caption([]) == []

    processor, model = captioner._loaded.processor, captioner._loaded.model
    asked = processor.apply_chat_template(
        [_chat(SEGMENTS[1])], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    with torch.inference_mode():
        out = model.generate(
            **asked, max_new_tokens=12, do_sample=False, output_scores=True, return_dict_in_generate=True
        )
    likelihoods = model.compute_transition_scores(out.sequences, out.scores, normalize_logits=True)
    assert alone[1].confidence == pytest.approx(math.exp(likelihoods.mean()), rel=1e-4), "the geometric mean"
    words = processor.batch_decode(out.sequences[:, asked["input_ids"].shape[1] :], skip_special_tokens=True)
    assert alone[1].text == " ".join(words[0].split())


def test_confidence_counts_a_row_to_its_end_and_not_its_padding():
    import torch

    steps = [torch.tensor([math.log(0.5), math.log(0.9)]), torch.tensor([math.log(0.5), math.log(0.4)])]
    likelihoods = _Likelihoods([*steps, torch.tensor([math.log(0.01), math.log(0.3)])])
    written = torch.tensor([[7, 1, 2], [7, 8, 9]])  # 1 is the end, 2 the padding
    assert likelihoods.confidences(written, 1) == pytest.approx([0.5, (0.9 * 0.4 * 0.3) ** (1 / 3)])
    assert likelihoods.confidences(written, [1, 8])[1] == pytest.approx((0.9 * 0.4) ** (1 / 2))
    assert likelihoods.confidences(written, None)[0] == pytest.approx((0.5 * 0.5 * 0.01) ** (1 / 3))
