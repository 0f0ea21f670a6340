"""The card: a head that YAML reads, with the facts of the dataset."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from kinodex.jobs.export.datasets import CardFacts, card_text

FACTS = CardFacts("my: films", "train", "float16", "ViT-B-16/webli", 768, 0.5, 12, 34_567, 1000, 2000)


def test_the_head_has_splits_features_and_files() -> None:
    head = yaml.safe_load(card_text(FACTS).split("---\n")[1])
    assert head["pretty_name"] == "my: films"
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-*"}]
    assert head["dataset_info"]["splits"] == [{"name": "train", "num_bytes": 2000, "num_examples": 34_567}]
    assert {"name": "vector", "sequence": "float16", "length": 768} in head["dataset_info"]["features"]


@pytest.mark.parametrize(("frames", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (2 * 10**9, "1B<n<10B")])
def test_the_size_is_a_category_of_the_hub(frames: int, size: str) -> None:
    assert f"size_categories:\n- {size}\n" in card_text(replace(FACTS, frames=frames))


def test_the_page_says_what_the_columns_are() -> None:
    text = card_text(FACTS)
    assert "34,567 frames of 12 videos, 0.5 a second;" in text
    assert "| `vector` | 768 numbers, float16 | of unit length, in the space `ViT-B-16/webli` |" in text
    assert "vector" not in card_text(replace(FACTS, vectors="none"))
