"""Clips: windows as vectors of a video-text model, here or behind an endpoint, and the search for them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import kinodex
from kinodex.agent.errors import ModelRejected, ModelUnreachable
from kinodex.index.errors import BadCheckpoint
from kinodex.index.library import Library
from kinodex.index.spaces.export_video_text import export_video_text_model
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import SpaceTowers, write_towers
from kinodex.index.spaces.video_text import load_video_text_model
from kinodex.jobs.add.clips import spans, windows_of
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Clips
from kinodex.jobs.clip_models import ENDPOINT, ClipQueries
from kinodex.jobs.errors import UsageError
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.moments import video
from tests.support.loopback import Answer
from tests.support.models.stage_models import library_of
from tests.support.scenes.moving_film import moving_film
from tests.support.servers.embed_server import REFUSALS, EmbedServer

FILMS = {
    "one": [("red", "right"), ("blue", "left"), ("red", "left")],
    "two": [("blue", "right"), ("green", "still"), ("red", "right")],
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films of twelve seconds, a stored frame a second, in parts of four seconds that move one way each."""
    folder = tmp_path_factory.mktemp("films")
    library_of(folder / "library", [moving_film(folder / f"{name}.mp4", parts) for name, parts in FILMS.items()])
    return folder / "library"


@pytest.fixture
def library(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    return Library.open(str(shutil.copytree(films, tmp_path / "library")))


def jpeg(seed: int) -> bytes:
    encoded, chance = io.BytesIO(), np.random.default_rng(seed)
    Image.fromarray(chance.integers(0, 255, (36, 64, 3), dtype=np.uint8)).save(encoded, "JPEG")
    return encoded.getvalue()


def test_a_window_has_the_frames_on_screen_in_its_parts() -> None:
    pictures = [(float(at), b"%d" % at) for at in range(10)]
    spans = [(0.0, 4.0), (2.0, 6.0), (7.5, 9.5), (20.0, 21.0)]
    found = [b" ".join(window) for window in windows_of(pictures, spans, 4)]
    assert found == [b"0 1 2 3", b"2 3 4 5", b"7 8 8 9", b"9 9 9 9"]
    assert next(windows_of([(5.0, b"5")], [(0.0, 2.0)], 2)) == [b"5"] * 2, "the first stands for what lies before it"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"window_s": 1.0}, "2 to 8"),
        ({"window_s": 9.0}, "2 to 8"),
        ({"stride_s": 5.0}, "nothing lies between"),
        ({"fps": 0.0}, "more than 0"),
    ],
)
def test_windows_that_leave_gaps_or_are_too_long_are_refused(settings: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Clips(model="model", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["xclip", "pe_video", "pe_audio_video"])
def test_vectors_are_those_of_the_model_s_own_forward(tiny_model: Callable[[str], Path], name: str) -> None:
    import torch

    model = load_video_text_model(str(tiny_model(name)), "cpu")
    windows, texts = [[jpeg(at + n) for n in range(model.frames)] for at in (0, 5)], ["a red kite", "snow"]
    seen, read = model.embed_windows(windows).astype(np.float32), model.embed_texts(texts)
    pictures = [[np.array(Image.open(io.BytesIO(each))) for each in window] for window in windows]
    words = model.tokenizer(texts, return_tensors="pt", padding=True)
    tokens = {key: words[key] for key in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        if name == "xclip":
            pixels = model._processor.image_processor(pictures, return_tensors="pt")["pixel_values"]
            out = model.model(pixel_values=pixels, **tokens)
            expected = out.video_embeds, model.model.get_text_features(**tokens).pooler_output
        else:
            whole = [np.stack(each) for each in pictures]
            pixels = model._processor.video_processor(whole, do_sample_frames=False, return_tensors="pt")
            out = model.model(pixel_values_videos=pixels["pixel_values_videos"], **tokens)
            expected = out.video_embeds, out.text_video_embeds
    for ours, theirs in zip((seen, read), expected, strict=True):
        units = torch.nn.functional.normalize(theirs.float(), dim=-1).numpy()
        assert ours.shape == (2, model.space.dim) and (ours * units).sum(1).min() > 0.999, name
    assert np.allclose(np.linalg.norm(read, axis=1), 1, atol=1e-4)


@pytest.mark.parametrize("name", ["xclip", "pe_video", "pe_audio_video"])
def test_texts_are_embedded_without_the_model(tiny_model: Callable[[str], Path], name: str, tmp_path: Path) -> None:
    model = load_video_text_model(str(tiny_model(name)), "cpu")
    write_towers(tmp_path, SpaceTowers(model.space, export_video_text_model(model, tmp_path)))
    texts = ["a red kite", "snow " * 40, ""]
    cosines = (TextTower.open(tmp_path).embed_text(texts) * model.embed_texts(texts)).sum(1)
    assert cosines.min() > 0.9999


def test_a_model_of_another_kind_is_refused(tiny_model: Callable[[str], Path]) -> None:
    with pytest.raises(BadCheckpoint, match=r"of the kind whisper; give one of xclip, pe_video"):
        load_video_text_model(str(tiny_model("whisper")))


@pytest.mark.slow
def test_clips_by_a_model_here(
    library: Library, tiny_model: Callable[[str], Path], kinodex: Kinodex, tmp_path: Path
) -> None:
    """A run adds them once, searches find them beside frames and alone, `info`, `remove` and `maintain` know them."""
    model, uri = str(tiny_model("xclip")), library.uri
    planned = kinodex("add", "clips", uri, "--model", model, "--dry-run")
    assert "| clips | 10 | 0 | 80 |" in planned.out, planned.out
    made = json_of(kinodex, "add", "clips", uri, "--model", model)
    assert (made["added"], made["rows"], made["failed"]) == (2, 10, 0)
    assert json_of(kinodex, "add", "clips", uri, "--model", model)["outcomes"] == []
    bad(kinodex, "add", "clips", uri, "--model", model, "--window", 8, code=2, says="first take out what is there")
    one, digest = library.video("one"), made["model"]
    space = library.visible.usual_space("clips")
    assert space is not None and space.digest == digest
    held = library.additions.clips(one.video_id, space)
    assert list(zip(held.start_s, held.end_s, strict=True)) == [(0, 4), (2, 6), (4, 8), (6, 10), (8, 12)]
    loaded = load_video_text_model(model)
    shown = [library.frames_at(one.video_id, [2 + n + 0.5], mode="shown")[0].jpeg for n in range(4)]
    assert float(held.vectors[1] @ loaded.embed_windows([shown])[0]) > 0.999

    hits = json_of(kinodex, "search", uri, "a red kite", "--in", "clips", "-k", 6)
    assert [hit["found_in"] for hit in hits] == ["clips"] * len(hits) and len(hits) >= 4
    query = loaded.embed_texts(["a red kite"])[0]
    best = max(float(each @ query) for row in library.videos() for each in clips_of(library, row.video_id))
    assert hits[0]["cosine"] == pytest.approx(best, abs=2e-3)
    for hit in hits:
        others = [each for each in hits if each is not hit and each["video_id"] == hit["video_id"]]
        assert all(abs(each["start_s"] - hit["start_s"]) >= 4 for each in others), "no two hits share time"
    assert (Path(uri) / "towers" / digest / "text.safetensors").exists()
    found = Finder(Library.open(uri)).find(Find(query="a red kite", k=3))
    assert found and all(hit.part("clips") or hit.part("frames") for hit in found)

    picture = tmp_path / "frame.jpg"
    picture.write_bytes(shown[0])
    both = json_of(kinodex, "search", uri, "at night", "--image", picture, "--in", "clips")
    assert {hit["query"] for hit in both} == {"sum"}
    expected = query_of(loaded, "at night", shown[0])
    best = max(float(each @ expected) for row in library.videos() for each in clips_of(library, row.video_id))
    assert both[0]["cosine"] == pytest.approx(best, abs=2e-2)

    assert "clips" in kinodex("info", uri).out
    assert json_of(kinodex, "maintain", uri, "--check", "--deep")["problems"] == []
    assert kinodex("remove", "added", uri, "clips", digest, "--yes").code == 0
    bad(kinodex, "search", uri, "a red kite", "--in", "clips", code=2, says="has no clips; `kinodex add clips`")
    assert library.additions.counts("clips") == {}


def clips_of(library: Library, video_id: str) -> np.ndarray:
    space = library.visible.usual_space("clips")
    assert space is not None
    return library.additions.clips(video_id, space).vectors.astype(np.float32)


def query_of(model: Any, words: str, jpeg_: bytes) -> np.ndarray:
    both = model.embed_windows([[jpeg_] * model.frames])[0].astype(np.float32) + model.embed_texts([words])[0]
    vector: np.ndarray = both / np.linalg.norm(both)
    return vector


def test_clips_by_an_endpoint_find_what_no_frame_shows(library: Library, kinodex: Kinodex, tmp_path: Path) -> None:
    """A square that goes right has the frames of one that goes left; windows tell them apart; nothing is paid twice."""
    uri = library.uri
    with EmbedServer() as server:
        words = ("add", "clips", uri, "--model", "mover", "--base-url", server.base_url, "--input-price", 2)
        planned = kinodex(*words, "--dry-run")
        assert "| clips | 10 | 10 | 40 |" in planned.out and server.asked == [], planned.out
        made = json_of(kinodex, *words)
        assert (made["added"], made["rows"]) == (2, 10)
        windows = [each for each in server.asked if len(each["messages"][1]["content"]) > 1]
        tokens = sum(10 + 70 * (len(each["messages"][1]["content"]) - 1) for each in windows)
        assert len(windows) == 10 and made["usage"]["input_tokens"] == tokens
        assert made["usage"]["cost"] == pytest.approx(2 * tokens / 1e6)
        assert [each["role"] for each in server.asked[0]["messages"]] == ["system", "user", "assistant"]
        finder = Finder(Library.open(uri))
        for way, colour, title, start_s in [
            ("right", "blue", "two", 0),
            ("left", "red", "one", 8),
            ("left", "blue", "one", 4),
        ]:
            best = finder.find(Find(query=f"{colour} moves {way}", in_="clips", k=1))[0]
            assert (best.title, best.time_s, best.end_s) == (title, start_s, start_s + 4), (way, colour)
        frame = library.frames_at(library.video("two").video_id, [5.0])[0]
        hits = finder.find(Find(query="this but red moves right", in_="clips", k=2), frame.jpeg)
        assert {hit.query for hit in hits} == {"model"} and len(server.asked[-1]["messages"][1]["content"]) == 2
        everywhere = {(hit.found_in, hit.query) for hit in finder.find(Find(query="red moves right", k=8), frame.jpeg)}
        assert everywhere and everywhere <= {("frames", "sum"), ("several", "sum"), ("clips", "model")}

        count = len(server.asked)
        assert kinodex("remove", "added", uri, "clips", made["model"], "--yes").code == 0
        again = json_of(kinodex, *words)
        assert (again["rows"], again["usage"]["cost"], len(server.asked)) == (10, 0, count), "replies are kept"
    gone = Finder(Library.open(uri))
    with pytest.raises(ModelUnreachable, match="nobody answers at"):
        gone.find(Find(query="green moves", in_="clips"))
    assert gone.find(Find(query="green moves")) and "nobody answers" in gone.clips_missing
    assert "note: clips are not searched: nobody answers" in kinodex("search", uri, "green moves on").err


@pytest.mark.usefixtures("quick_tries")
@pytest.mark.parametrize(
    ("refuses", "says"),
    {
        "no model": "has no model 'other'; the nearest of the 1 it lists: mover",
        "no pooling": "The model does not support Embeddings API",
        "one picture": "At most 1 image",
        "too long": "longer than 'other' at 127.0.0.1 can hold",
        "no key": "refuses the key|refuses a request without a key|check the key",
        "no route": "offers no embeddings of messages",
        "no vector": "sent no vector but",
        "zeros": "sent no vector but",
        "too large": "sent no vector but",
        "too many": "sent no vector but",
    }.items(),
)
def test_what_a_server_refuses_is_said_in_its_words(library: Library, refuses: str, says: str) -> None:
    assert refuses in REFUSALS
    with EmbedServer(refuses) as server, pytest.raises((ModelRejected, ModelUnreachable), match=says) as error:
        add(library, Clips(model="mover" if refuses == "no route" else "other", base_url=server.base_url))
    assert "\n" not in str(error.value) and library.additions.counts("clips") == {}


def test_a_server_whose_vectors_change_their_length_is_named(library: Library) -> None:
    def before() -> Answer | None:
        return REFUSALS["eight"] if len(server.asked) > 5 else None

    with (
        EmbedServer(before=before) as server,
        pytest.raises(ModelUnreachable, match=r"8 dimensions.* have 6; serve one"),
    ):
        add(library, Clips(model="mover", base_url=server.base_url))
    with EmbedServer() as server:  # nothing of the wrong length was kept
        add(library, Clips(model="mover", base_url=server.base_url))
    assert library.additions.counts("clips")


def test_a_count_of_tokens_that_makes_no_sense_is_left_out(library: Library) -> None:
    class Absurd(EmbedServer):
        def reply(self, body: dict[str, Any]) -> Answer:
            made = super().reply(body)
            made.body["usage"] = {"prompt_tokens": 10**400}
            return made

    with Absurd() as server:
        outcome = add(library, Clips(model="mover", base_url=server.base_url, input_price=1.0))
    assert outcome.usage.input_tokens == 0 and library.additions.counts("clips")


def test_a_decode_at_more_frames_a_second_sees_between_stored_frames(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbedServer() as server:
        report = kinodex.open(library.uri).add(
            "clips", model="mover", base_url=server.base_url, window_s=2.0, stride_s=2.0, fps=10, videos="one"
        )
        assert (report.added, report.rows) == (1, 6)
        shown = [each["messages"][1]["content"] for each in server.asked[1:]]
        assert [sum("image_url" in part for part in each) for each in shown] == [8] * 6, "eight different frames"
        space = library.visible.usual_space("clips")
        assert space is not None
        monkeypatch.setenv(ENDPOINT, server.base_url)
        vectors = clips_of(library, library.video("one").video_id)
        right, left = (vectors @ ClipQueries(library, space).embed(f"moves {way}") for way in ("right", "left"))
        assert (right > left).tolist() == [True, True, False, False, False, False]


def test_vllm_s_bare_form(library: Library) -> None:
    """Without an instruction the message goes alone, as models want it that know no system."""
    with EmbedServer() as server:
        add(library, Clips(model="clip", base_url=server.base_url, instruction=""))
        assert [[each["role"] for each in body["messages"]] for body in server.asked] == [["user"]] * 11
        assert json.dumps(server.asked[1]).count("add_special_tokens") == 0


@pytest.mark.ray
@pytest.mark.slow
def test_clips_on_ray(library: Library, tiny_model: Callable[[str], Path], ray_cluster: Any) -> None:
    from kinodex.jobs.add.ray import ray_executor

    with ray_executor(2, ray_cluster.address) as executor:
        report = add(library, Clips(model=str(tiny_model("xclip")), device="cpu"), executor=executor)
    assert (report.added, report.rows) == (2, 10)


def test_windows_of_films_of_different_lengths() -> None:
    stage = Clips(model="model")
    found = [spans(stage, replace(video(), start_s=0.0, duration_s=length_s)) for length_s in (1.0, 7.0)]
    assert found == [[(0.0, 1.0)], [(0.0, 4.0), (2.0, 6.0), (4.0, 7.0)]]


def test_an_address_that_a_library_names_gets_no_query_and_no_key(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may have made the library: it must not learn what is looked for, nor anybody's key."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with EmbedServer() as server:
        report = add(library, Clips(model="mover", base_url=server.base_url))
        assert server.keys == {"Bearer secret"}, "who adds names the address"
        space = library.visible.usual_space("clips")
        assert space is not None
        server.keys.clear()
        ClipQueries(library, space).embed("red moves right")
        assert server.keys == {"Bearer no-key"}
        counts = {each.video_id: each.rows for each in report.outcomes}
        for address in ("https://models.example.com/v1", "http://127.0.0.1:9/v1", "http://192.168.1.1/v1"):
            library.additions.complete("clips", space.digest, counts, {"base_url": address})
            with pytest.raises(ModelUnreachable, match=f"an address that the library names; .* set {ENDPOINT}"):
                ClipQueries(library, space).embed("kite")
        with pytest.raises(ModelUnreachable, match=f"an address that the library names; .* set {ENDPOINT}"):
            ClipQueries(library, space).embed("green moves")
        monkeypatch.setenv(ENDPOINT, server.base_url)
        ClipQueries(library, space).embed("green moves")
        assert "Bearer secret" in server.keys
