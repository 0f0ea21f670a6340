"""The program `transformers`, where torchvision may be of another build than torch: Pillow then decodes pictures.

python -m tests.support.servers.third_parties.transformers_program serve MODEL --port 8322
"""

from __future__ import annotations

import io
from typing import Any

import torch
from PIL import Image

from kinodex.index.spaces.import_torch import import_torchvision


def decode_image(encoded: torch.Tensor, mode: Any = None, **_: Any) -> torch.Tensor:
    """An encoded picture [bytes] as RGB [3, height, width]."""
    with Image.open(io.BytesIO(encoded.numpy().tobytes())) as picture:
        pixels = torch.frombuffer(bytearray(picture.convert("RGB").tobytes()), dtype=torch.uint8)
        return pixels.reshape(picture.height, picture.width, 3).permute(2, 0, 1).contiguous()


def start() -> None:
    """Run the program with the arguments of this process."""
    import_torchvision()
    import torchvision.io

    try:
        torchvision.io.decode_image(torch.zeros(1, dtype=torch.uint8))
    except RuntimeError as error:
        if "image extension" in str(error):
            torchvision.io.decode_image = decode_image
    from transformers.cli.transformers import main

    main()


if __name__ == "__main__":
    start()
