"""Background requests of chat clients: titles, tags and follow-up questions for a chat, which no search can answer.

A client sends them to the model of the chat unless it is told another one, after each answer several. They are known by
the beginning of the prompt that each client has for them; who changed it is answered as before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kinodex.web.openai.errors import RequestRefused
from kinodex.web.openai.messages import Conversation

CODE = "background_task"


SETTINGS = "in the settings of that client"


@dataclass(frozen=True, slots=True)
class ChatTask:
    """Prompts of a client: where they stand, how they begin, and where its user names another model for them."""

    client: str
    stands_in: Literal["question", "instructions"]
    begins: re.Pattern[str]
    setting: str = SETTINGS


def _begins(*texts: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{'|'.join(texts)})", re.IGNORECASE | re.DOTALL)


TASKS = (
    ChatTask(
        "Open WebUI",
        "question",
        _begins(
            r"### Task:.*(?:<chat_history>|### Chat History:)",
            r"### Task:\s*You are an autocompletion system",
            r"Your task is to reflect the speaker's likely facial expression",
        ),
        "Admin Panel, Settings, Interface, Task Model",
    ),
    ChatTask(
        "LibreChat",
        "question",
        _begins(r"(?:Please )?(?:generate|provide) a concise, 5-word-or-less title for the conversation"),
        "titleModel in librechat.yaml",
    ),
    ChatTask(
        "NextChat",
        "question",
        _begins(
            r"Please generate a four to five word title summarizing our conversation",
            r"Summarize the discussion briefly in 200 words or less to use as a prompt for future context",
        ),
    ),
    ChatTask("Chatbox", "question", _begins(r"Based on the chat history, give this conversation a name")),
    ChatTask(
        "LobeChat",
        "instructions",
        _begins(r"You are a professional conversation summarizer. Generate a concise title"),
    ),
    ChatTask("Cherry Studio", "instructions", _begins(r"Summarize the conversation into a title")),
    ChatTask("big-AGI", "instructions", _begins(r"You are an AI conversation titles assistant")),
)
"""The prompts of clients as they come, which their users may change."""


def refuse_task(conversation: Conversation) -> None:
    """Raise RequestRefused for a background request of a chat client: it would cost a search, and answer nothing."""
    for task in TASKS:
        if task.begins.match(getattr(conversation, task.stands_in)):
            raise RequestRefused(
                f"got a background request of {task.client}, for a title, tags or the like of a chat, which no video "
                f"shows: name another model for them ({task.setting}), or turn them off",
                "messages",
                CODE,
            )
