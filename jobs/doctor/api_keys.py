"""Keys: which are set, by name; a value is never looked at further than that."""

from __future__ import annotations

import os

from jobs.doctor.finding import Finding

SECTION = "keys"
FOR = {
    "OPENAI_API_KEY": "for language models that are not on this machine or a private network",
    "HF_TOKEN": "for models of the hub that ask for consent",
    "AWS_ACCESS_KEY_ID": "for s3://, unless a profile or role gives access",
    "AWS_SECRET_ACCESS_KEY": "for s3://, unless a profile or role gives access",
}


def keys(further: str | None = None) -> list[Finding]:
    """The variables that kinodex and its libraries read, and one further."""
    wanted = FOR if further is None or further in FOR else {further: "for the endpoint", **FOR}
    return [
        Finding(SECTION, name, "ok", f"set, {what}")
        if os.environ.get(name, "").strip()
        else Finding(SECTION, name, "missing", f"not set, {what}", f"export {name}=... where it is needed")
        for name, what in wanted.items()
    ]
