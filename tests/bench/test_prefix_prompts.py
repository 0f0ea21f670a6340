"""Requests as lists of tokens: texts in pieces, pictures by content, and what stands before the messages."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kinodex.agent.prompts import user_message
from kinodex.agent.protocol import Question, ShownFrame
from kinodex.agent.requests.tree import DiscoverQueries
from kinodex.jobs.errors import UsageError
from tests.bench.prefix import (
    FAMILIES,
    Tokens,
    parse_size,
    parse_tokens,
    prompt_of_messages,
    prompt_of_request,
    prompts_of_trace,
)
from tests.support.every_request import kinds, of_full_size


def test_a_text_is_its_pieces_and_the_speaker_before_it() -> None:
    prompt = prompt_of_messages("Ask", "m", [{"role": "user", "content": "Is it red?"}], "", Tokens())
    assert "".join(str(token) for token in prompt.tokens) == "<|im_start|>user\nIs it red?<|im_end|>\n"
    assert (prompt.kind, prompt.model, prompt.pictures) == ("Ask", "m", 0)


def test_a_picture_is_known_by_its_content() -> None:
    red, blue, red_again = (_prompt(colour) for colour in ("red", "blue", "red"))
    assert red == red_again and red != blue
    assert red.pictures == 1
    assert sum(isinstance(token, tuple) for token in red.tokens) == 255 and len(red.tokens) == len(blue.tokens)


@pytest.mark.parametrize(("rules", "is_first"), [("openai", True), ("vllm", False)])
def test_the_schema_stands_first_by_the_rules_of_openai_alone(rules: str, is_first: bool) -> None:
    request = DiscoverQueries(question=Question("What is red?"))
    text = "".join(map(str, prompt_of_request(request, "m", parse_tokens(rules, "openai", None)).tokens))
    assert text.startswith("{") == is_first
    assert "What is red?" in text


def test_kinds_that_go_to_openai_with_one_schema_are_a_family_in_traces() -> None:
    rules = Tokens("openai")
    first = {}
    for kind in ("ScoreSegments", "Decide", "Assess", "DiscoverQueries"):
        (prompt,) = prompts_of_trace([{**_record("Look.", []), "request": kind}], (512, 288), rules)
        first[kind] = prompt.tokens
    assert first["ScoreSegments"] == first["Decide"]
    assert len(set(first.values())) == 3


def test_the_families_are_those_of_the_requests() -> None:
    joints = {kind.__name__: of_full_size(kind).joint() for kind in kinds()}
    families = {name: "search" if "ratings" in it.replies else "bank" for name, it in joints.items() if it is not None}
    assert families == FAMILIES


def test_pictures_of_a_trace_stand_at_their_labels() -> None:
    frames = [{"video_id": "v", "frame_no": 3, "time_s": 3.0, "jpeg": digest} for digest in ("aa", "bb")]
    text = "Look.\n\n[frame 1 at 3.00 s]\n[frame 2 at 4.00 s]\n\nWell?"
    (new,) = prompts_of_trace([_record(text, frames)], (512, 288), Tokens())
    (old,) = prompts_of_trace([_record("Look. Well?", frames)], (512, 288), Tokens())
    assert (new.pictures, old.pictures) == (2, 2)
    at = [place for place, token in enumerate(new.tokens) if isinstance(token, tuple) and token[1] == 0]
    assert at[1] - at[0] == 255 + 5 and "".join(map(str, new.tokens[at[1] + 255 :])) == "\n\nWell?<|im_end|>\n"
    assert isinstance(old.tokens[-3], str) and isinstance(old.tokens[-4], tuple)


def test_turns_and_repairs_of_a_trace_are_counted() -> None:
    inputs = {"turns": [{"speaker": "assistant", "text": "I look."}], "bad_reply": "{", "complaint": "broken"}
    (prompt,) = prompts_of_trace([_record("Look.", [], inputs)], (512, 288), Tokens())
    text = "".join(map(str, prompt.tokens))
    assert [text.count(each) for each in ("<|im_start|>assistant", "<|im_start|>user", "broken")] == [2, 2, 1]


def test_options_that_are_no_rules() -> None:
    with pytest.raises(UsageError, match="got --rules gemini; the rules are vllm and openai"):
        parse_tokens("gemini", "openai", None)
    with pytest.raises(UsageError, match="got --pictures gemini; the rules are openai and qwen"):
        parse_tokens("vllm", "gemini", None)
    with pytest.raises(UsageError, match="got --size 512"):
        parse_size("512")
    assert parse_size("512x288") == (512, 288)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no tokenizer"):
        parse_tokens("vllm", "openai", tmp_path)


def test_the_tokenizer_of_a_folder(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(["?", "Look", "<", "|"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rules = parse_tokens("vllm", "openai", tmp_path)
    assert list(rules.tokenize("Look Look away")) == [1, 1, 0]


def _prompt(colour: str | None):
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (512, 288), colour or "red").save(file, "JPEG")
    frames = [ShownFrame("v", 1, 1.0, 512, 288, file.getvalue())] if colour else []
    return prompt_of_messages("Ask", "m", [user_message("Look.", frames, None)], "", Tokens())


def _record(text: str, frames: list[dict], inputs: dict | None = None) -> dict:
    return {
        "event": "Exchanged",
        "request": "Ask",
        "model": "m",
        "prompt": text,
        "inputs": {"frames": frames, **(inputs or {})},
    }
