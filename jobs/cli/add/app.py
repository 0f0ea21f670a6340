"""`kinodex add`: results of more models for the videos of a library."""

from __future__ import annotations

import typer

from jobs.cli.add import captions as add_captions_command
from jobs.cli.add import detections as add_detections_command
from jobs.cli.add import sentences as add_sentences_command
from jobs.cli.add import speech as add_speech_command
from jobs.cli.add import summaries as add_summaries_command
from jobs.cli.add import text as add_text_command
from jobs.cli.add import text_tower as add_text_tower_command
from jobs.cli.add import vectors as add_vectors_command

app = typer.Typer(
    help="Add captions, detections, speech, text on screen, another space and so on to the videos of a library that "
    "lack them. Run again, it does only what is new; it may run beside an ingest.",
    no_args_is_help=True,
)
app.command("captions")(add_captions_command.captions)
app.command("detections")(add_detections_command.detections)
app.command("sentences")(add_sentences_command.sentences)
app.command("speech")(add_speech_command.speech)
app.command("text")(add_text_command.text)
app.command("summaries")(add_summaries_command.summaries)
app.command("vectors")(add_vectors_command.vectors)
app.command("text-tower")(add_text_tower_command.text_tower)
