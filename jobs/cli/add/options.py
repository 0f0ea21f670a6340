"""The options that the commands of `kinodex add` share."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

ModelOption = Annotated[str, typer.Option("--model", help="A model of transformers: a hub id or a local folder.")]
DeviceOption = Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda.")]
RayOption = Annotated[bool, typer.Option("--ray", help="Share the work among Ray actors.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Ray actors, each with the model. Default: one a GPU, else one a core.")
]
AddressOption = Annotated[
    str | None, typer.Option("--ray-address", help="The Ray cluster. Default: RAY_ADDRESS, else one started here.")
]


class Sharing(NamedTuple):
    """Use of Ray: on or off, its address, and the number of actors."""

    ray: bool
    address: str | None
    workers: int | None
