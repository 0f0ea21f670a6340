"""Searches of the query string, and those that make no sense."""

from __future__ import annotations

import pytest

from kinodex.index.errors import KinodexError
from kinodex.jobs.errors import UsageError
from kinodex.web.search import SearchRequest, numbers, read_request


def test_a_search_is_read_with_its_limits():
    query = {"text": "a boat", "kind": "frames", "video": "ab12", "from": "1.5", "to": "", "most": "7"}
    assert read_request(query) == SearchRequest("a boat", "frames", "ab12", 1.5, None, 7)
    assert read_request({"like": "ab12/30"}).like == ("ab12", 30)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"kind": "all"}, "together, frames"),
        ({"most": "0"}, "from 1 to 100"),
        ({"most": "9" * 40}, "from 1 to 100"),
        ({"from": "soon"}, "give a number"),
        ({"like": "ab12"}, "ID/FRAME"),
        ({"like": "ab12/-1"}, "ID/FRAME"),
        ({"text": "x" * 2001}, "at most 2000"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_what_is_allowed(query, says):
    with pytest.raises(KinodexError, match=says):
        read_request(query)


def test_numbers_of_a_query_string():
    assert numbers({"from": "1.5", "to": ""}, "from", "to", "k") == [1.5, None, None]
    with pytest.raises(UsageError, match="give a number"):
        numbers({"from": "soon"}, "from")
