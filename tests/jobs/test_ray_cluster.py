"""A cluster that is not there is one line, at once."""

from __future__ import annotations

import pytest

from jobs.errors import UsageError
from jobs.ray_cluster import connected


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nobody_listens_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=f"cannot reach Ray at {address}.*--ray without one"), connected(address):
        pass
