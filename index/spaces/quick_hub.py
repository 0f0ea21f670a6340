"""The hub of models without its long retries, where it does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kinodex.index.shared_switch import SharedSwitch

PROBE_TIMEOUT_S = 5.0


def _use_cache_only() -> Callable[[], None]:
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    return lambda: setattr(constants, "HF_HUB_OFFLINE", before)


_cache_only = SharedSwitch(_use_cache_only)


@contextmanager
def quick_hub() -> Iterator[bool]:
    """Use the hub's cache alone within this block if the hub is silent; yield True if the hub answers.

    The client retries each file with growing pauses, 46 s for one model without a network; one request settles it.
    """
    from huggingface_hub import constants

    with _cache_only.lock:
        is_held, is_offline = _cache_only.holders > 0, constants.HF_HUB_OFFLINE
    if is_offline and not is_held:  # the user's own setting
        yield False
    elif is_held or not hub_answers():
        with _cache_only.held():
            yield False
    else:
        yield True


def hub_answers(timeout_s: float = PROBE_TIMEOUT_S) -> bool:
    """Return True if the hub answers in time; it does not if it takes long over its answer, a byte at a time."""
    from huggingface_hub import constants

    answers: list[bool] = []
    url = constants.ENDPOINT
    probe = threading.Thread(target=lambda: answers.append(_replies(url, timeout_s)), name="hub", daemon=True)
    probe.start()
    probe.join(timeout_s)
    return answers == [True]


def _replies(url: str, timeout_s: float) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout_s):
            return True
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except OSError:
        return False
