"""The server's model looks at moments of a search, by HTTP, within the limits of questions (page: test_browser.py)."""

from __future__ import annotations

from tests.support.servers.chat_server import ChatServer
from tests.support.servers.serve_server import Client

VERIFY = "/data/libraries/0/verify"


def test_verdicts_over_http_are_paid_from_the_money_of_the_day(looking: tuple[Client, ChatServer]) -> None:
    client, _ = looking
    assert client.get("/data/home").json["serve"]["looks"] == "tester"
    found = client.get("/data/libraries/0/search?query=a+boat&in=frames").json
    (first, second, *_) = found["groups"][0]["hits"]
    video_id = found["groups"][0]["video_id"]
    moments = [{"video_id": video_id, "start_s": each["start_s"], "end_s": each["end_s"]} for each in (first, second)]
    said = client.post(VERIFY, {"text": "a boat", "moments": moments}).json
    assert (said["basis"], [each["present"] for each in said["moments"]]) == ("verified", [True, False])
    assert said["claim"] == "present: a model saw it in 1 of the 2 moments it looked at"
    assert (said["calls"], said["invalid"], said["cost"] > 0) == (1, 0, True)
    again = client.post(VERIFY, {"text": "a boat", "moments": moments}).json
    assert (again["moments"], again["calls"], again["cost"]) == (said["moments"], 0, 0)
    for body, status, says in (
        ({"text": "a boat", "moments": []}, 400, "moments"),
        ({"text": " ", "moments": moments}, 400, "give a text"),
        ({"text": "a boat", "moments": [moments[0] | {"end_s": 1e6}]}, 400, "no moment of"),
        ({"text": "a boat", "moments": [moments[0] | {"video_id": "nowhere"}]}, 404, "nowhere"),
    ):
        reply = client.post(VERIFY, body)
        assert (reply.status, says in reply.json["error"]) == (status, True), reply.json
    assert client.send("POST", VERIFY, b"{}", {"content-type": "text/plain"}).status == 415
    refused = [client.post(VERIFY, {"text": f"boat {n}", "moments": moments}).status for n in range(3)]
    assert refused[-1] == 429, "the money of the day is spent"
