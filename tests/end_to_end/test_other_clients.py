"""Programs of others call `kinodex serve`: LiteLLM, OpenAI's client for JavaScript, a chat, a kit, an MCP client."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

import kinodex
from kinodex.jobs.eval.folder import read_run
from tests.support.servers.serve_server import Client, serving
from tests.support.servers.third_parties import lmms_task
from tests.support.servers.third_parties.environments import (
    fastmcp_python,
    llm_program,
    lmms_eval_python,
    openai_js,
)
from tests.support.servers.third_parties.processes import litellm_proxy
from tests.world.benchmark import SKETCHES

pytestmark = [pytest.mark.third_party, pytest.mark.slow, pytest.mark.timeout(900)]
MODEL = "library:eea"
QUESTION = "What colour is the bird at sea?\nA. red\nB. black\nC. white"
USE_FASTMCP = """
import asyncio, json, sys
from fastmcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        tools = sorted(tool.name for tool in await client.list_tools())
        videos = await client.call_tool("videos", {})
        asked = {"question": "What colour is the bird at sea?", "videos": ["film-01"]}
        asked["options"] = ["red", "black", "white"]
        answer = await client.call_tool("ask", asked)
        count = json.loads(videos.content[0].text)["library_videos"]
        print(json.dumps({"tools": tools, "videos": count, "answer": json.loads(answer.content[0].text)}))

asyncio.run(main())
"""
USE_JS = """
import OpenAI from "openai";
const [address, content] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });
const tool = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } };
const chat = { model: "library", messages: [{ role: "user", content }], tools: [tool], user: "me", seed: 1 };
const kinds = new Set();
const events = client.responses.stream({ model: "library", input: content, metadata: { a: "b" } });
events.on("event", (each) => kinds.add(each.type));
const streamed = await events.finalResponse();
const refused = await client.chat.completions.create({ ...chat, tool_choice: "required" }).catch((error) => error);
console.log(JSON.stringify({
  texts: [
    (await client.chat.completions.create(chat)).choices[0].message.content,
    (await client.chat.completions.stream(chat).finalChatCompletion()).choices[0].message.content,
    (await client.responses.create({ model: "library", input: content })).output_text,
    streamed.output_text,
  ],
  cited: streamed.output.at(-1).content[0].annotations[0].title,
  kinds: [...kinds],
  refused: [refused.status, refused.type, refused.param],
}));
"""
FILM_QUESTION = f"video: film-01\n{QUESTION}"


@pytest.fixture(scope="module")
def served(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving([library], tmp_path_factory.mktemp("traces"), at_once=8) as client:
        yield client


def test_litellms_proxy(served: Client, tmp_path: Path) -> None:
    key = f"sk-{secrets.token_hex(32)}"
    video = {"kinodex": {"videos": ["film-01"]}}
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    with (
        litellm_proxy(f"{served.address}/v1", tmp_path, key, MODEL) as base_url,
        OpenAI(base_url=base_url, api_key=key, max_retries=0) as client,
    ):
        reply = client.chat.completions.create(model=MODEL, messages=messages, extra_body=video)
        chunks = list(client.chat.completions.create(model=MODEL, messages=messages, stream=True, extra_body=video))
        response = client.responses.create(model=MODEL, input=FILM_QUESTION)
        events = list(client.responses.create(model=MODEL, input=FILM_QUESTION, stream=True))
    assert response.output_text == "B. black"
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert reply.choices[0].message.content == "B. black"
    deltas = [each.choices[0].delta for each in chunks if each.choices]
    assert "".join(each.content or "" for each in deltas) == "B. black"
    thoughts = "".join(getattr(each, "reasoning_content", None) or "" for each in deltas)
    print(reply.model_dump_json(exclude_none=True)[:400], thoughts)
    assert "It answered after " in thoughts


def test_openais_client_for_javascript(served: Client, tmp_path: Path) -> None:
    (tmp_path / "use.mjs").write_text(USE_JS)
    (tmp_path / "node_modules").symlink_to(openai_js() / "node_modules")
    command = ["node", "--preserve-symlinks-main", "use.mjs", served.address, FILM_QUESTION]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    assert found["texts"] == ["B. black"] * 4
    assert found["cited"] == "film-01 0:15.0 to 0:16.0"
    assert {"response.created", "response.reasoning_summary_text.delta", "response.completed"} < {*found["kinds"]}
    assert found["refused"] == [400, "invalid_request_error", "tool_choice"]


def test_a_chat_program(served: Client, tmp_path: Path) -> None:
    config = f'- {{model_id: films, model_name: library, api_base: "{served.address}/v1"}}\n'
    (tmp_path / "extra-openai-models.yaml").write_text(config)
    own = {**_own_environment(), "LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": "none"}

    def said(*command: str) -> str:
        ran = subprocess.run([str(llm_program()), *command], capture_output=True, text=True, env=own, stdin=DEVNULL)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout.strip()

    words = "No answer in words without a language model: these moments fit the question best."
    for more in ([], ["--no-stream"], ["-s", "Be short.", "-o", "seed", "1"]):
        answer = said("-m", "films", *more, "video: film-01\nWhat colour is the bird at sea?")
        assert answer == f"{words}\n\nSeen in film-01 0:14.0 to 0:18.0."
    assert said("-c", f"And {QUESTION}") == "B. black"


def test_fastmcps_client(served: Client) -> None:
    command = [str(fastmcp_python()), "-c", USE_FASTMCP, f"{served.address}/mcp"]
    ran = subprocess.run(command, capture_output=True, text=True, env=_own_environment())
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    print(ran.stdout)
    assert found["tools"] == sorted(
        ["videos", "overview", "search", "ground", "frames", "lines", "captions", "chapters", "detections", "ask"]
    )
    assert (found["videos"], found["answer"]["letter"], found["answer"]["status"]) == (3, "B", "answered")


def test_lmms_eval_scores_as_kinodex_eval_does(served: Client, library: Path, films: Path, tmp_path: Path) -> None:
    task, out = tmp_path / "task", tmp_path / "out"
    shutil.copytree(Path(lmms_task.__file__).parent, task)
    config = task / "sketch_films.yaml"
    config.write_text(config.read_text().replace("QUESTIONS", str(films / "questions.jsonl")))
    settings = f"model_version={MODEL},base_url={served.address}/v1,api_key=none,pass_video_url=True,num_concurrent=4"
    command = [
        str(lmms_eval_python()),
        "-m",
        "lmms_eval",
        "--model",
        "openai",
        "--model_args",
        f"{settings},timeout=120",
    ]
    command += ["--tasks", "sketch_films", "--include_path", str(task), "--log_samples", "--output_path", str(out)]
    own = {**_own_environment(), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    ran = subprocess.run([*command, "--batch_size", "1"], capture_output=True, text=True, env=own)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    (samples,) = out.rglob("*_samples_sketch_films.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    kits = {line["doc_id"]: line["filtered_resps"][0] for line in lines}

    questions = [json.loads(line)["question_id"] for line in (films / "questions.jsonl").read_text().splitlines()]
    report = kinodex.eval(
        str(library), SKETCHES, films / "questions.jsonl", tmp_path / "run", agents=["eea"], controls=False
    )
    options = {each.item_id: each.option for each in read_run(tmp_path / "run").records}
    assert None not in options.values()
    assert kits == {number: string.ascii_uppercase[options[each] or 0] for number, each in enumerate(questions)}
    (results,) = out.rglob("*_results.json")
    scored = json.loads(results.read_text())["results"]["sketch_films"]["accuracy,none"]
    print(f"lmms-eval {scored}, kinodex eval {report.standings[0].accuracy.mean}")
    assert scored == pytest.approx(report.standings[0].accuracy.mean)


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
