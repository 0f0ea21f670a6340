"""Server-sent events: messages that no text can break, resumed by their numbers."""

from __future__ import annotations

from tests.support.servers.serve_server import Client

BIRD = "What colour is the bird at sea?"


def test_a_stream_is_one_that_proxies_pass_on(client: Client) -> None:
    key = client.ask(BIRD)
    reply = client.get(f"/data/questions/{key}/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert (reply.headers["x-accel-buffering"], reply.headers["cache-control"]) == ("no", "no-store")
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")


def test_one_who_had_the_end_is_not_sent_it_again(client: Client) -> None:
    """An EventSource comes back for ever where a stream just ends; 204 is how to say no (HTML, section 9.2.3)."""
    key = client.ask(BIRD)
    end = list(client.events(key))[-1]
    assert client.get(f"/data/questions/{key}/events", {"last-event-id": str(end.number)}).status == 204
    (only,) = client.events(key)
    assert (only.kind, only.data) == ("state", {"state": "done", "error": None})
    for number in ("x", "-1", "9" * 30):
        assert [event.kind for event in client.events(key, {"last-event-id": number})] == ["state"]


def test_one_who_broke_off_before_the_end_is_sent_the_end(client: Client) -> None:
    """The stream may end between two messages of a reader, and the server may be another one by then."""
    key = client.ask(BIRD)
    before, *_, end = client.events(key)
    assert before.number < end.number
    for number in (before.number, end.number - 1):
        assert list(client.events(key, {"last-event-id": str(number)})) == [end]
