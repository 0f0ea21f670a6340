"""Checks of keys for `kinodex doctor`: variables of the environment that are set, whose values are never shown."""

from __future__ import annotations

import os
from functools import partial

from kinodex.doctor.check_result import CheckResult

of_keys = partial(CheckResult, "keys")
KEYS = {
    "OPENAI_API_KEY": "for language models that are not on this machine or a private network",
    "HF_TOKEN": "for models of the hub that ask for consent",
    "AWS_ACCESS_KEY_ID": "for s3://, unless a profile or role gives access",
    "AWS_SECRET_ACCESS_KEY": "for s3://, unless a profile or role gives access",
}


def check_keys(extra: str | None = None) -> list[CheckResult]:
    variables = KEYS if extra is None or extra in KEYS else {extra: "for the endpoint", **KEYS}
    return [
        of_keys(name, "ok", f"set, {purpose}")
        if os.environ.get(name, "").strip()
        else of_keys(name, "missing", f"not set, {purpose}", f"export {name}=... where it is needed")
        for name, purpose in variables.items()
    ]
