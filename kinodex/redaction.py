"""Redaction: texts and addresses without the secrets in them, for every place where something is written or printed.

Secrets are recognised by where they stand: the user of an address, parameters of its query that grant access, values
of environment variables that are named as keys, and what stands in an `Authorization` header.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

MASK = "***"
SHORTEST = 8
"""Characters of the shortest secret that is looked for by its value: a shorter one would hide common words."""
SECRET_PARAMETER = re.compile(
    r"[\w.-]*(?:token|secret|signature|passw|credential|api[-_]?key|access[-_]?key|jwt|hmac)[\w.-]*"
    r"|(?:[\w.-]+[-_])?auth(?:orization|[-_][\w.-]+)?|session(?:[-_]?id)?|sig|policy|key-pair-id|expires|pwd|pass"
    r"|x-(?:amz|goog|oss|cos|ms)-[\w-]+|hdn(?:ea|ts)|awsaccesskeyid|googleaccessid",
    re.IGNORECASE,
)
"""Names of query parameters that grant access, and of those that belong to a signature and change with it: AWS, Google
Cloud, Azure, Alibaba, Tencent, CloudFront and Akamai, and the names that most others take."""
SIGNED_BY_SIG = re.compile(
    r"s[vesprt]|ss|srt|spr|sip|si|sdd|ses|sk(?:oid|tid|[tesv])|(?:sa|su|sc)(?:oid|id)|rsc[cdelt]"
)
"""Parameters of a shared access signature of Azure, where a parameter `sig` makes it one."""
KEY_PARAMETER = re.compile(r"(?:key|code|k|t|s|h|hash)=[\w%+~=-]{20,}", re.IGNORECASE)
"""A parameter that grants access if its value looks like a key, and names something else otherwise."""
USER_IS_PLACE = frozenset({"github", "abfs", "abfss", "wasb", "wasbs"})
"""Protocols where a repository or a container stands in the place of the user."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]*[^\s'\"<>`:;,.)\]]")
_PARTS = re.compile(r"(?s)([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#]*)@)?([^?#]*)(.*)")
_QUERY = re.compile(r"(?s)[?#]([^?#]*)")
_HEADER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{8,}")
_KEY = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*?[A-Za-z0-9]{20,}|(?:hf|gsk|xai|gh[oprsu])[-_][A-Za-z0-9]{20,}"
    r"|AIza[\w-]{30,}|A[KS]IA[A-Z0-9]{16})[\w-]*"
)
"""Keys as services make them: a prefix, a separator, and more letters and digits in a row than names have."""
_KEY_NAME = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PAT)(?:_|$)")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Take the secrets out of a text: those in addresses are left out, others become `MASK`.

    `secrets` are values to look for besides those of the environment's keys. A text without any comes back as it is.
    """
    return _redact(text, _known_secrets(secrets))


def redact_uri(uri: str) -> str:
    """Take the secrets out of an address: what is left names the same thing; a path comes back as it is."""
    parts = _PARTS.fullmatch(uri) if "://" in uri else None
    if parts is None:
        return uri
    protocol, user, place, rest = parts.groups()
    scheme = protocol.lower()
    names_place = scheme in USER_IS_PLACE or (":" not in (user or "") and scheme not in ("http", "https"))
    kept_user = f"{user}@" if user is not None and names_place else ""
    return f"{protocol}://{kept_user}{place}{_QUERY.sub(_plain_query, rest)}"


def redact_values(value: Any) -> Any:
    """Take the secrets out of all texts in a JSON value, keys apart."""
    return _redact_all(value, _known_secrets(()))


def _redact_all(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _redact(value, secrets)
    if isinstance(value, Mapping):
        return {key: _redact_all(each, secrets) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_all(each, secrets) for each in value]
    return value


def _redact(text: str, secrets: Sequence[str]) -> str:
    if "://" in text:
        text = _ADDRESS.sub(lambda found: redact_uri(found[0]), text)
    for secret in secrets:
        text = text.replace(secret, MASK)
    return _KEY.sub(MASK, _HEADER.sub(rf"\1 {MASK}", text))


def _plain_query(query: re.Match[str]) -> str:
    """Return the query or fragment without the parameters that grant access; without any left, nothing."""
    parameters = query[1].split("&")
    names = [parameter.partition("=")[0].lower() if "=" in parameter else "" for parameter in parameters]
    kept = [
        parameter
        for name, parameter in zip(names, parameters, strict=True)
        if not (
            SECRET_PARAMETER.fullmatch(name)
            or KEY_PARAMETER.fullmatch(parameter)
            or ("sig" in names and SIGNED_BY_SIG.fullmatch(name))
        )
    ]
    if kept == parameters:
        return query[0]
    return query[0][0] + "&".join(kept) if kept else ""


def _known_secrets(secrets: Iterable[str]) -> list[str]:
    """List these values and those of the environment's keys (a path is none), the longest first."""
    named = (value.strip() for name, value in os.environ.items() if _is_key(name))
    values = {*secrets, *(value for value in named if not os.access(value, os.F_OK))}
    return sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)


@cache
def _is_key(name: str) -> bool:
    """Return True for a variable named as a key; remembered, for every text that is shown asks this of all of them."""
    return _KEY_NAME.search(name.upper()) is not None
