"""`kinodex demo`: the whole job, on films of one's own or on films made of photographs."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from kinodex.agent.models.contact_sheets import draw_sheet
from kinodex.agent.traces.trace import read_trace
from kinodex.demo.films import FILMS, PHOTOGRAPHS, SHOT_S, Shot, shots, write_films
from kinodex.index.library import Library
from kinodex.index.times import clock
from kinodex.jobs.errors import SOME_FAILED
from kinodex.output import console

SPACE, SEARCHES, MOST_TILES = "photo", 3, 36
ASKED = ("coffee", "mountains")
"""The photographs that are asked about by a command."""
VERDICTS = {True: "right", False: "wrong"}
OWN_QUESTION = "Which of these is seen?"


def demo(
    films: Annotated[
        Path | None, typer.Argument(help="Folder of your own films; without it films are made of photographs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the films, the library, its frames and traces.")] = Path("demo"),
) -> None:
    """Make a library of your films, or of films of photographs, search it and ask it two questions, offline."""
    began = time.monotonic()
    steps = Steps(out, out / ("library" if films is None else "own"))
    if films is None:
        _make_films(steps, out / "films")
    steps.run("ingest", films or out / "films", "--library", steps.place, "--space", SPACE, may_fail=films is not None)
    _write_sheet(steps, out / ("frames.jpg" if films is None else "own-frames.jpg"))
    if films is None:
        _search_photographs(steps)
        _ask_about_photographs(steps)
    else:
        _search_and_ask_own(steps)
    command = _command()
    steps.out.print(
        f"\nDone in {time.monotonic() - began:.0f} s. In a browser: {command} serve {steps.place}\n"
        "Next, on films of your own, offline too:\n"
        f"{command} ingest FOLDER --library mine\n"
        f'{command} search mine "a dog on a beach"\n'
        f"{command} serve mine",
        soft_wrap=True,
        markup=False,
    )


@dataclass
class Steps:
    """Numbered steps, most of them commands, with the library at `place` and traces in `folder`."""

    folder: Path
    place: Path
    out: Console = field(default_factory=console)
    number: int = 0

    def begin(self, title: str) -> None:
        """Print the title of the next step."""
        self.number += 1
        self.out.print(f"\n[bold]{self.number}. {escape(title)}[/]", soft_wrap=True)

    def run(self, *arguments: object, may_fail: bool = False) -> None:
        """Print a command and run it: typed again, it prints the same."""
        from kinodex.cli.main import app

        words = [str(argument) for argument in arguments]
        self.begin(shlex.join([_command(), *words]))
        code = app(words, standalone_mode=False)
        if code and not (may_fail and code == SOME_FAILED):
            raise typer.Exit(code)

    def ask(self, number: int, question: str, options: tuple[str, ...], video: str) -> int | None:
        """Ask a question with options about a video; return the option that is answered."""
        trace = self.folder / f"trace_{number}.jsonl"
        choices = [part for option in options for part in ("--option", option)]
        self.run("ask", self.place, question, *choices, "--video", video, "--trace", trace)
        option: int | None = read_trace(trace)[-1]["answer"]["option"]
        return option

    def say_truth(self, truth: str, verdict: str) -> None:
        """Print what is true below what was found or answered, and if that was right."""
        self.out.print(f"[bold]truth[/]     {truth}: [bold]{verdict}[/]", soft_wrap=True)

    def say_share(self, what: str, verdicts: Mapping[str, bool]) -> None:
        """Print how many of the searches or questions about all photographs are right, and which are not."""
        wrong = ", ".join(repr(each) for each, is_right in verdicts.items() if not is_right)
        self.out.print(
            f"\nOf such {what}, one for each of the {len(verdicts)} photographs, {sum(verdicts.values())} are right; "
            f"not so: {wrong or 'none'}",
            soft_wrap=True,
            markup=False,
        )


def _command() -> str:
    """Return the name to call the command line by: after `make demo` it is on no PATH."""
    return "kinodex" if shutil.which("kinodex") else sys.argv[0]


def _make_films(steps: Steps, folder: Path) -> None:
    steps.begin(f"{len(FILMS)} films into {folder}")
    steps.out.print(
        f"No footage: slow pans over {len(shots())} photographs, {SHOT_S} s each. Who took them: "
        f"{PHOTOGRAPHS / 'NOTICE.md'}",
        soft_wrap=True,
    )
    for path, photographs in zip(write_films(folder), FILMS.values(), strict=True):
        steps.out.print(f"{path}: {', '.join(photographs)}", soft_wrap=True)


def _write_sheet(steps: Steps, path: Path) -> None:
    """Draw one frame of each shot, or of some of them evenly, as one picture."""
    library = Library.open(str(steps.place))
    seen = [row for row in library.videos() if row.frames]
    middles = [(row, (each.start_s + each.end_s) / 2) for row in seen for each in library.segments(row.video_id)]
    some = [middles[number * len(middles) // MOST_TILES] for number in range(MOST_TILES)]
    chosen = some if len(middles) > MOST_TILES else middles
    frames = [library.frames_at(row.video_id, [time_s], mode="nearest")[0] for row, time_s in chosen]
    if frames:
        labels = [f"{row.title} {clock(each.time_s)}" for (row, _), each in zip(chosen, frames, strict=True)]
        path.write_bytes(draw_sheet([each.jpeg for each in frames], labels))
        of_some = f"{len(chosen)} of {len(middles)} shots" if len(middles) > len(chosen) else "each shot"
        steps.begin(f"a frame of {of_some} in one picture: {path}")


def _search_photographs(steps: Steps) -> None:
    """Search for the first photograph of each film, then for all, and compare with what is shown when."""
    import kinodex

    with kinodex.open(steps.place) as library:

        def is_found(shot: Shot) -> bool:
            hit = library.search(shot.words, k=1)[0]
            return hit.title == shot.film and shot.start_s <= hit.time_s < shot.end_s

        found = {shot: is_found(shot) for shot in shots().values()}
    for shot in (next(each for each in found if each.film == film) for film in FILMS):
        steps.run("search", steps.place, shot.words, "-k", SEARCHES, "--min-gap", SHOT_S)
        steps.say_truth(_place_of(shot), VERDICTS[found[shot]])
    steps.say_share("searches", {shot.words: is_right for shot, is_right in found.items()})


def _ask_about_photographs(steps: Steps) -> None:
    """Ask two questions by commands, then one about each photograph, and compare with their answers."""
    import kinodex

    for number, shot in enumerate((shots()[name] for name in ASKED), 1):
        option = steps.ask(number, shot.question, shot.options, shot.film)
        verdict = "not answered" if option is None else VERDICTS[shot.options[option] == shot.answer]
        steps.say_truth(f"{shot.answer}, {_place_of(shot)}", verdict)
    with kinodex.open(steps.place) as library:
        steps.say_share(
            "questions",
            {
                shot.question: library.ask(shot.question, options=shot.options, videos=shot.film).text == shot.answer
                for shot in shots().values()
            },
        )


def _place_of(shot: Shot) -> str:
    return f"the photograph {shot.photograph}, {shot.film} {clock(shot.start_s)} to {clock(shot.end_s)}"


def _search_and_ask_own(steps: Steps) -> None:
    """Search for the everyday scenes that fit these films best, and ask which of four is seen in the films of two."""
    from kinodex.example_searches import example_searches
    from kinodex.jobs.open import load_text_tower

    library = Library.open(str(steps.place))
    examples = example_searches(library, load_text_tower(library, SPACE), SEARCHES)
    if examples:
        steps.out.print("\nOf a list of everyday scenes these fit your films best; they may fit badly.", soft_wrap=True)
    for each in examples:
        steps.run("search", steps.place, each.scene, "-k", SEARCHES, "--min-gap", SHOT_S)
    if examples:
        steps.out.print(
            "\nWhich is seen: one of these, or one of three scenes that fit the film least?", soft_wrap=True
        )
    for number, each in enumerate(examples[:2], 1):
        steps.ask(number, OWN_QUESTION, tuple(sorted([each.scene, *each.unlike])), each.video_id)
