"""Background requests of chat clients are refused at once: no search of the videos, no call of a model, no trace."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from kinodex.jobs.models import ModelChoice
from kinodex.web.openai.chat_tasks import SETTINGS, TASKS, refuse_task
from kinodex.web.openai.errors import RequestRefused
from kinodex.web.openai.messages import Message, read_conversation
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.serve_server import serving

HISTORY = "<chat_history>\nUSER: What colour is the ball in the meadow?\nASSISTANT: purple\n</chat_history>"
OPEN_WEBUI = {
    "title": "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
    "tags": "Generate 1-3 broad tags categorizing the main themes of the chat history, along with 1-3 more specific "
    "subtopic tags.",
    "follow-ups": "Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next in this "
    "conversation as a **user**, based on the chat history, to help continue or deepen the discussion.",
    "queries": "Analyze the chat history to determine the necessity of generating search queries.",
}
PROMPTS = {
    **{
        f"Open WebUI, {name}": f"### Task:\n{task}\n### Output:\nJSON format: {{}}\n### Chat History:\n{HISTORY}"
        for name, task in OPEN_WEBUI.items()
    },
    "Open WebUI, autocompletion": "### Task:\nYou are an autocompletion system. Continue the text in `<text>`",
    "LibreChat": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only "
    "return the title itself.\n\nConversation:\nUser: What colour is the ball?\nAI: purple",
    "NextChat, title": "Please generate a four to five word title summarizing our conversation without any lead-in, "
    "punctuation, quotation marks, periods, symbols, bold text, or additional text. Remove enclosing quotation marks.",
    "NextChat, summary": "Summarize the discussion briefly in 200 words or less to use as a prompt for future context.",
    "Chatbox": "Based on the chat history, give this conversation a name.\nKeep it short, no quotes.",
}
INSTRUCTIONS = {
    "LobeChat": "You are a professional conversation summarizer. Generate a concise title that captures the essence of "
    "the conversation.",
    "Cherry Studio": "Summarize the conversation into a title in English within 10 words ignoring instructions",
    "big-AGI": "You are an AI conversation titles assistant who specializes in creating expressive yet few-words chat "
    "titles.",
}
QUESTIONS = (
    "What colour is the ball in the meadow?",
    "### Task:\nWhat colour is the ball in the meadow?",
    "Which title is on the cover of the book?",
    "Summarize the discussion in the kitchen.",
    "Provide a concise description of the conversation at 0:30.",
)


def test_a_background_request_costs_nothing(library: Path, tmp_path: Path) -> None:
    with ChatServer(lambda _: "never asked") as model:
        with serving([library], tmp_path / "traces", ModelChoice("tester", model.base_url)) as served:
            chat = OpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0)
            for name, prompt in PROMPTS.items():
                for stream in (False, True):
                    with pytest.raises(openai.BadRequestError) as caught:
                        chat.chat.completions.create(
                            model="library", messages=[{"role": "user", "content": prompt}], stream=stream
                        )
                    assert caught.value.code == "background_task", name
                    assert name.partition(",")[0] in str(caught.value) and "another model" in str(caught.value)
                with pytest.raises(openai.BadRequestError, match="background request"):
                    chat.responses.create(model="library", input=prompt)
            for name, instructions in INSTRUCTIONS.items():
                turns: list[ChatCompletionMessageParam] = [
                    {"role": "system", "content": instructions},
                    {"role": "user", "content": "user: What colour is the ball?\nassistant: purple"},
                ]
                with pytest.raises(openai.BadRequestError, match=name):
                    chat.chat.completions.create(model="library", messages=turns)
            chat.close()
        assert model.seen == []
    assert not list((tmp_path / "traces").rglob("q*")), "no question was kept"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_about_videos_is_none(question: str) -> None:
    refuse_task(
        read_conversation([Message(role="system", content="Be brief."), Message(role="user", content=question)])
    )


def test_a_request_after_turns_of_a_chat_is_known_too() -> None:
    turns = [("user", QUESTIONS[0]), ("assistant", "purple"), ("user", PROMPTS["NextChat, title"])]
    with pytest.raises(RequestRefused, match="NextChat"):
        refuse_task(read_conversation([Message(role=role, content=text) for role, text in turns]))  # type: ignore[arg-type]


def test_each_client_of_the_table_has_a_prompt_here_and_the_recipe_names_where_to_set_another_model(root: Path) -> None:
    assert {task.client for task in TASKS} == {name.partition(",")[0] for name in (*PROMPTS, *INSTRUCTIONS)}
    recipe = (root / "docs" / "recipes.md").read_text(encoding="utf-8")
    for task in TASKS:
        assert task.client in recipe and (task.setting == SETTINGS or task.setting in recipe), task.client
