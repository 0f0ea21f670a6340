"""The card of an exported dataset: its head for `datasets`, and a page for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from jobs.export.huggingface.features import Precision, yaml_features

SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
    (10_000_000_000, "1B<n<10B"),
)
"""Categories of size, each below its number of rows, as the hub names them."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Facts about an exported dataset."""

    name: str
    split: str
    vectors: Precision
    space: str
    dim: int
    sample_fps: float | None
    videos: int
    frames: int
    stored_bytes: int
    unpacked_bytes: int


def card_text(facts: CardFacts) -> str:
    """Write the card."""
    head = yaml.safe_dump(_head(facts), sort_keys=False, allow_unicode=True)
    rate = "" if facts.sample_fps is None else f", {facts.sample_fps:g} a second"
    vector = f"| `vector` | {facts.dim} numbers, {facts.vectors} | of unit length, in the space `{facts.space}` |\n"
    return f"""---
{head}---

# {facts.name}

{facts.frames:,} frames of {facts.videos:,} videos{rate}; a frame that stays on screen is there once.
Exported by kinodex.

```python
from datasets import load_dataset

frames = load_dataset("path/to/this/folder", split="{facts.split}")
print(frames[0]["title"], frames[0]["time_s"], frames[0]["image"].size)
```

| column | type | contents |
|---|---|---|
| `video_id` | string | first 32 hex digits of the SHA-256 of the video file |
| `title` | string | of the video |
| `frame_no` | int32 | number of the first sample that shows the frame |
| `time_s` | float64 | when a player shows the frame, seconds from 0:00 |
| `width_px`, `height_px` | int32 | of the picture |
| `image` | image | JPEG |
{vector if facts.vectors != "none" else ""}
Rows are in the order of videos by title, and of time within a video. A video is never divided between files.
"""


def _head(facts: CardFacts) -> dict[str, Any]:
    size = next((name for most, name in SIZES if facts.frames < most), "10B<n<100B")
    split = {"name": facts.split, "num_bytes": facts.unpacked_bytes, "num_examples": facts.frames}
    return {
        "pretty_name": facts.name,
        "tags": ["video", "kinodex"],
        "size_categories": [size],
        "configs": [
            {"config_name": "default", "data_files": [{"split": facts.split, "path": f"data/{facts.split}-*"}]}
        ],
        "dataset_info": {
            "features": yaml_features(facts.vectors, facts.dim),
            "splits": [split],
            "download_size": facts.stored_bytes,
            "dataset_size": facts.unpacked_bytes,
        },
    }
