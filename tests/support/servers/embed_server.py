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
import json
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.loopback import send_json, serve_handler

JPEG_URL = "data:image/jpeg;base64,"
WORDS = ("right", "left", "red", "green", "blue")
"""What each number of a vector stands for; the last, which all have, keeps any of them from being zero."""
LONG = (
    "This model's maximum context length is 2048 tokens. However, you requested 9001 tokens in the input for embedding "
    "generation. Please reduce the length of the input."
)


def _refusal(message: str, kind: str = "BadRequestError", param: str | None = None, code: int = 400) -> tuple[int, Any]:
    return code, {"error": {"message": message, "type": kind, "param": param, "code": code}}


REFUSALS: dict[str, tuple[int, Any]] = {
    "no model": _refusal("The model `other` does not exist.", "NotFoundError", "model", 404),
    "no pooling": _refusal("The model does not support Embeddings API"),
    "one picture": _refusal("At most 1 image(s) may be provided in one prompt."),
    "too long": _refusal(LONG, param="input_tokens"),
    "no key": (401, {"error": "Unauthorized"}),
    "no route": (404, {"detail": "Not Found"}),
    "no vector": (200, {"object": "list", "data": [], "usage": {"prompt_tokens": 3}}),
}
"""What vLLM says, by what is wrong."""


class EmbedServer:
    """Serves `{base_url}/embeddings` until the `with` ends; `refuses` is a key of `REFUSALS`, and what `before`
    gives is the answer in the place of a vector."""

    def __init__(self, refuses: str = "", before: Callable[[], tuple[int, Any] | None] = lambda: None) -> None:
        self.refuses = refuses
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        """What came as authorization."""
        self._before = before
        self._address = ""
        self._serving = serve_handler(self._handler())

    @property
    def base_url(self) -> str:
        return f"{self._address}/v1"

    def __enter__(self) -> EmbedServer:
        self._address = self._serving.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.__exit__(kind, error, trace)

    def reply(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and JSON for the body of one request."""
        if self.refuses:
            return REFUSALS[self.refuses]
        ends = body["messages"][-1]["role"] == "assistant"
        if body.get("continue_final_message", False) != ends or body["encoding_format"] != "float":
            return 400, {"error": {"message": "continue_final_message needs a final message", "code": 400}}
        (user,) = [each for each in body["messages"] if each["role"] == "user"]
        pictures = [_pixels(part["image_url"]["url"]) for part in user["content"] if part["type"] == "image_url"]
        text = " ".join(part["text"] for part in user["content"] if part["type"] == "text")
        self.asked.append(body)
        vector, tokens = vector_of(text, pictures), 10 + 70 * len(pictures)
        return 200, {
            "id": f"embd-{len(self.asked)}",
            "object": "list",
            "created": 1_800_000_000,
            "model": body["model"],
            "data": [{"index": 0, "object": "embedding", "embedding": vector.tolist()}],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
        }

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
                """Nothing is printed."""

            def do_GET(self) -> None:
                send_json(
                    self, 200, {"object": "list", "data": [{"id": "mover", "object": "model", "max_model_len": 8192}]}
                )

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.keys.add(self.headers.get("Authorization", ""))
                is_there = self.path == "/v1/embeddings"
                send_json(self, *(server._before() or (server.reply(body) if is_there else REFUSALS["no route"])))

        return Handler


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
