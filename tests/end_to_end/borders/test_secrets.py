"""No password, token or key that kinodex is given is in any file that it writes, or in anything that it prints.

Real servers on loopback: one serves films to one user, the other is an endpoint that quotes requests as it refuses.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.command import Kinodex, Ran
from tests.support.servers.chat_server import Behaviour, failing
from tests.support.servers.files import serve_folder
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN

USER, PASSWORD, TOKEN, KEY = "marked-user-11", "marked-password-22", "marked-token-33", "marked-key-44"
LOGIN = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
FILM = "film-01.mp4"
SECRETS = (USER, PASSWORD, TOKEN, KEY, LOGIN)


class QuotingServer(RuleServer):
    """An endpoint that quotes the request's headers and address where it refuses: always, or what holds `refused`."""

    refused: str | None = None

    def answer(self, headers: Mapping[str, str], body: dict) -> Behaviour:
        if self.refused is None or self.refused not in json.dumps(body):
            return super().answer(headers, body)
        address = self.base_url.replace("://", f"://{USER}:{PASSWORD}@")
        sent = headers.get("Authorization")
        return failing(400, f"got key {KEY}, login {LOGIN} ({sent}) at {address}/chat?api_key={TOKEN}, {PASSWORD}")


@dataclass
class Session:
    """A user at a terminal, and all that was printed so far."""

    kinodex: Kinodex
    printed: list[str] = field(default_factory=list)

    def __call__(self, *arguments: object, code: int | None = 0) -> Ran:
        ran = self.kinodex(*arguments)
        assert code is None or ran.code == code, ran
        self.printed += [ran.out, ran.err]
        return ran


def leaks(folder: Path, session: Session, logged: str) -> list[str]:
    """Places where a secret stands: files below a folder by their bytes, tables by their rows, and what was printed."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {secret}" for secret in SECRETS if secret.encode() in content]
    for text in [*session.printed, logged]:
        found += [f"printed: {text[max(0, text.find(secret) - 200) :][:300]}" for secret in SECRETS if secret in text]
    return found


def rows_of(library: Library) -> str:
    """All rows of a library as text, but for pictures and vectors."""
    tables = ("videos", "sources", "failures", "runs", "additions", "segments", "speech", "captions")
    return "\n".join(str(library.tables.rows(name).to_pylist()) for name in tables)


@contextmanager
def served(film: Path, films: Path, folder: Path) -> Iterator[str]:
    """Serve a film with questions, and a file that is none, to one user; gives the address without the user."""
    folder.mkdir()
    shutil.copy(film, folder)
    lines = (films / "questions.jsonl").read_text().splitlines()
    asked = [line for line in lines if json.loads(line)["video"] == FILM][:2]
    (folder / "questions.jsonl").write_text("\n".join(asked) + "\n")
    (folder / "noise.mp4").write_text("no film")
    with serve_folder(folder, f"{USER}:{PASSWORD}") as address:
        yield address


def with_user(address: str) -> str:
    return address.replace("://", f"://{USER}:{PASSWORD}@")


def ingest_privately(session: Session, address: str, library: Path) -> None:
    """Ingest a film, no film and nothing, again, with a new token, with a wrong one, and what failed."""
    ingest = ("ingest", "--library", library, "--space", DRAWN)
    sources = [f"{with_user(address)}/{name}?token={TOKEN}" for name in (FILM, "noise.mp4", "nothing.mp4")]
    session(*ingest, *sources, code=3)
    renewed = [source.replace(TOKEN, f"{TOKEN}-renewed") for source in sources[:2]]
    left_out = json.loads(session(*ingest, *renewed, "--json").out)["left_out"]
    assert left_out == 2, "the same sources, with another token"
    session(*ingest, f"{address}/{FILM}?token={TOKEN}", code=None)
    session(*ingest, "--retry-failed", code=3)
    (video,) = Library.open(str(library)).videos()
    assert video.uri == f"{address}/{FILM}"
    failures = {(row.uri, row.error_class) for row in Library.open(str(library)).ingest_log.failures()}
    assert failures == {
        *((f"{address}/{name}", "SourceForbidden") for name in (FILM, "noise.mp4", "nothing.mp4")),
        (f"{address}/noise.mp4", "NotAVideo"),
    }


def use_endpoint(session: Session, server: QuotingServer, library: Path, questions: Path) -> None:
    """Ask, evaluate, examine and caption by an endpoint that answers, and by one that refuses and quotes."""
    endpoint = ("--base-url", with_user(server.base_url))
    model = ("--model", MODEL, *endpoint)
    benchmark = ("eval", "run", SKETCHES, library, "--annotations", questions, *model, "--max-errors", 100, "--no-page")
    for refused in ("", None):
        server.refused = refused
        session("ask", library, "What happens?", *model, "--agent", "eea", "--trace", f"{refused}.jsonl", code=None)
        session(*benchmark, "--agent", "eea", "--out", f"run-{refused}", code=0 if refused is None else None)
        session("doctor", "--library", library, *endpoint, code=None)
        session("add", "captions", library, *model, code=0 if refused is None else None)
        if refused == "":
            (failure,) = [row for row in Library.open(str(library)).ingest_log.failures() if row.stage == "captions"]
            assert "got key ***, login ***" in failure.message
    session("eval", "report", "run-")
    session("export", "page", library, "run.html", "--trace", "run-", code=None)
    session("export", "page", library, "trace.html", "--trace", "None.jsonl")


@pytest.mark.slow
def test_no_secret_is_written_or_printed(
    kinodex: Kinodex,
    films: Path,
    short_films: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = tmp_path / "written"
    written.mkdir()
    library = written / "library"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("KINODEX_CACHE", str(written / "cache"))
    monkeypatch.chdir(written)
    session = Session(kinodex)
    with served(short_films / FILM, films, tmp_path / "served") as address:
        ingest_privately(session, address, library)
    server = QuotingServer(Rules())
    with server:
        use_endpoint(session, server, library, tmp_path / "served" / "questions.jsonl")
    gone = with_user(server.base_url)  # nobody answers there any more
    Path("roles.toml").write_text(f'[default]\nmodel = "{MODEL}"\nbase_url = "{gone}"\nattempts = 1\n')
    session("ask", library, "What?", "--models", "roles.toml", "--no-cache", code=None)
    Path("roles.toml").unlink()
    session("ask", library, "What?", "--model", MODEL, "--base-url", f"{USER}:{PASSWORD}@host", code=2)
    session("doctor", "--base-url", gone, code=None)
    session("export", "page", library, "library.html")
    session("export", "hf", library, "dataset")
    for runs in ((), ("--runs",)):
        session("info", library, *runs)
        session("info", library, *runs, "--json")
    opened = Library.open(str(library))
    found = leaks(written, session, caplog.text + rows_of(opened))
    assert not found, "\n".join(found)
