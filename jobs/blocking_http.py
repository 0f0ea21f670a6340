"""A client for plain functions whose replies are read within the limits of `agent.models.bounded_http`."""

from __future__ import annotations

from typing import Any

import httpx2

from kinodex.agent.models.bounded_http import MOST_REPLY_BYTES, BoundedClient
from kinodex.agent.models.endpoint import trusted_certificates
from kinodex.jobs.models import run_now


class BlockingClient(httpx2.Client):
    """A client whose every request is sent by a `BoundedClient`; raises as that does."""

    def __init__(self, *, most_bytes: int = MOST_REPLY_BYTES, **options: Any) -> None:
        super().__init__(verify=trusted_certificates(), **options)
        self._most_bytes = most_bytes

    def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send a request, and read the whole reply."""
        return run_now(self._send_bounded(request))

    async def _send_bounded(self, request: httpx2.Request) -> httpx2.Response:
        async with BoundedClient(most_bytes=self._most_bytes, verify=trusted_certificates()) as client:
            return await client.send(request)
