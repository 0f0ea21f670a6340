"""What an object store's errors mean, from the debug text that LanceDB makes of them."""

from __future__ import annotations

import re

CODE = re.compile(r"<Code>(\w+)</Code>")
ADDRESS = re.compile(r"uri: Some\((\w+://[^/?)]+)")
REFUSED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")
ELSEWHERE = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")


def explain(text: str) -> str | None:
    """What is wrong and what to do about it, in one line, or None if the text is none of a store."""
    named = CODE.search(text)
    code = named[1] if named else ""
    found = ADDRESS.search(text)
    address = found[1] if found else "the store"
    if code == "NoSuchBucket":
        return "there is no such bucket; make it, or give another"
    if code in REFUSED or "status: 403" in text or "status: 401" in text:
        why = f" ({code})" if code else ""
        return f"{address} refuses these credentials{why}; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if "Failed to get AWS credentials" in text or "CredentialsNotLoaded" in text:
        return "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    if code in ELSEWHERE:
        return f"the bucket is in another region ({code}); set AWS_REGION"
    if code == "NotImplemented":
        return f"{address} does not know conditional writes, without which commits are not safe; use another store"
    if "BadScheme" in text:
        return f"{address} is plain http; set AWS_ALLOW_HTTP=true if that is meant"
    if "kind: Connect" in text or "kind: Timeout" in text:
        return f"{address} does not answer; check AWS_ENDPOINT_URL and the network"
    return None
