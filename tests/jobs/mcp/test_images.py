"""Pictures in a reply are few and small."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from mcp import Client
from PIL import Image

from kinodex.index.library import Library
from kinodex.mcp import replies
from tests.support.libraries.agent_library import make_library
from tests.support.servers.mcp_client import pictures, texts, use_tools


def test_pictures_are_few_and_small(mcp_library: Library, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (640, 640, 3), dtype=np.uint8)
    heavy = io.BytesIO()
    Image.fromarray(noise).save(heavy, "JPEG", quality=92)

    async def many(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "harbour", "count": 20, "side_px": 4000})
        heading = json.loads(texts(result)[0])
        assert len(pictures(result)) == heading["frames"] == replies.FRAMES
        assert heading["cut"] == (
            "8 frames spread over the part, which are as many as a reply holds; pictures are at most 1024 pixels a side"
        )
        times_s = [json.loads(text)["time_s"] for text in texts(result)[1:]]
        assert np.diff(times_s).min() >= 3

        named = await client.call_tool("frames", {"video": "harbour", "times_s": [*range(30)]})
        assert json.loads(texts(named)[0])["cut"] == "the frames of the first 8 times alone, of 30 given"

    async def large(client: Client) -> None:
        result = await client.call_tool("frames", {"video": "noise", "count": 8})
        jpegs = [each.data for each in result.content if each.type == "image"]
        assert 0 < len(jpegs) < 8
        assert sum(map(len, jpegs)) <= replies.IMAGE_BYTES * 4 / 3 + 4 * len(jpegs)
        assert f"{len(jpegs)} of 8 pictures fit" in texts(result)[0]

    use_tools(mcp_library, many)
    use_tools(make_library(tmp_path / "heavy", {"noise": ["noise"] * 8}, heavy.getvalue()), large)
