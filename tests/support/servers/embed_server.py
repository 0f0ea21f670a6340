"""`/v1/embeddings` on loopback as vLLM serves a model that embeds messages with pictures (Qwen3-VL-Embedding).

    with EmbedServer() as server:
        add(library, Clips("mover", base_url=server.base_url))
    assert len(server.asked) == 12

The vector says how a bright thing moves from the first picture to the last, to the right or to the left, and of what
colour it is: so a test knows which window is right. Words say the same. What vLLM refuses is refused in its words.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.loopback import NOT_FOUND, Answer, Call, Server

JPEG_URL = "data:image/jpeg;base64,"
WORDS = ("right", "left", "red", "green", "blue")
"""What each number of a vector stands for; the last, which all have, keeps any of them from being zero."""
LONG = (
    "This model's maximum context length is 2048 tokens. However, you requested 9001 tokens in the input for embedding "
    "generation. Please reduce the length of the input."
)


def _refusal(message: str, kind: str = "BadRequestError", param: str | None = None, code: int = 400) -> Answer:
    return Answer(code, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def _vector(numbers: Sequence[float]) -> Answer:
    return Answer(200, {"object": "list", "data": [{"index": 0, "embedding": numbers}], "usage": {"prompt_tokens": 3}})


REFUSALS = {
    "no model": _refusal("The model `other` does not exist.", "NotFoundError", "model", 404),
    "no pooling": _refusal("The model does not support Embeddings API"),
    "one picture": _refusal("At most 1 image(s) may be provided in one prompt."),
    "too long": _refusal(LONG, param="input_tokens"),
    "no key": Answer(401, {"error": "Unauthorized"}),
    "no route": Answer(404, NOT_FOUND),
    "eight": _vector([0.1] * 8),
    "zeros": _vector([0.0] * 8),
    "too large": _vector([1e300] * 8),
    "too many": _vector([1] * ((1 << 20) + 1)),
    "no vector": Answer(200, {"object": "list", "data": [], "usage": {"prompt_tokens": 3}}),
}
"""What vLLM says, by what is wrong."""


class EmbedServer(Server):
    """Serves `{base_url}/embeddings` until the `with` ends; `refuses` is a key of `REFUSALS`, and what `before`
    gives is the answer in the place of a vector."""

    def __init__(self, refuses: str = "", before: Callable[[], Answer | None] = lambda: None) -> None:
        self.refuses, self._before = refuses, before
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        """What came as authorization."""

    def respond(self, call: Call) -> Answer:
        if call.method == "GET":
            model = {"id": "mover", "object": "model", "max_model_len": 8192}
            return Answer(200, {"object": "list", "data": [model]})
        self.keys.add(call.headers.get("authorization", ""))
        is_there = call.path == "/v1/embeddings"
        return self._before() or (self.reply(call.json) if is_there else REFUSALS["no route"])

    def reply(self, body: dict[str, Any]) -> Answer:
        """The vector of one request's body, or what is wrong with it."""
        if self.refuses:
            return REFUSALS[self.refuses]
        ends = body["messages"][-1]["role"] == "assistant"
        if body.get("continue_final_message", False) != ends or body["encoding_format"] != "float":
            return _refusal("continue_final_message needs a final message")
        (user,) = [each for each in body["messages"] if each["role"] == "user"]
        pictures = [_pixels(part["image_url"]["url"]) for part in user["content"] if part["type"] == "image_url"]
        text = " ".join(part["text"] for part in user["content"] if part["type"] == "text")
        self.asked.append(body)
        vector, tokens = vector_of(text, pictures), 10 + 70 * len(pictures)
        about = {"id": f"embd-{len(self.asked)}", "object": "list", "created": 1_800_000_000, "model": body["model"]}
        data = [{"index": 0, "object": "embedding", "embedding": vector.tolist()}]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
        return Answer(200, {**about, "data": data, "usage": usage})


def vector_of(text: str, pictures: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The vector of words and pictures together: what each says is added."""
    vector = np.array([*(float(word in text.lower().split()) for word in WORDS), 0.1])
    if pictures:
        moved = _centre(pictures[-1]) - _centre(pictures[0])
        colour = np.mean([_colour(each) for each in pictures], axis=0)
        vector += [max(moved, 0.0), max(-moved, 0.0), *colour, 0.0]
    unit: NDArray[np.float64] = vector / np.linalg.norm(vector)
    return unit


def _pixels(url: str) -> NDArray[np.float64]:
    from PIL import Image

    assert url.startswith(JPEG_URL)
    with Image.open(io.BytesIO(base64.b64decode(url.removeprefix(JPEG_URL)))) as picture:
        return np.asarray(picture.convert("RGB"), np.float64) / 255


def _centre(picture: NDArray[np.float64]) -> float:
    """Where the bright thing is, from 0 on the left to 2 on the right."""
    bright = (picture.max(axis=2) > 0.4).any(axis=0)
    return float(np.flatnonzero(bright).mean() / picture.shape[1] * 2) if bright.any() else 1.0


def _colour(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    bright = picture[picture.max(axis=2) > 0.4]
    return bright.mean(axis=0) if len(bright) else np.zeros(3)
