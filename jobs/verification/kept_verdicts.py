"""Verdicts that are kept beside the replies of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from kinodex.agent.models.response_cache import ResponseCache, cache_key
from kinodex.agent.models.roles import Role
from kinodex.agent.requests.judge_moments import JudgeMoments
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, cache_file, endpoint_roles
from kinodex.jobs.verification.requests import FRAMES_A_MOMENT, one_line
from kinodex.jobs.verification.spans import Span, Verdict


def looking_role(choice: ModelChoice) -> Role:
    """Return the settings of the model that looks.

    Raises UsageError for a choice of models none of which sees pictures.
    """
    roles = endpoint_roles(choice)
    role = roles.get(JudgeMoments.role, roles.get("default"))
    if role is None:
        got = choice.roles_file or f"the model {choice.model}"
        raise UsageError(
            f"got {got} to look at moments, which has no model that sees; name a vision-language model behind an "
            f"endpoint with --model and --base-url, or as [{JudgeMoments.role}] with --models"
        )
    return role


@dataclass(frozen=True, slots=True)
class KeptVerdicts:
    """The verdicts of a model on what is sought."""

    cache: ResponseCache
    role: Role
    sought: str

    def of(self, spans: Sequence[Span]) -> dict[int, Verdict]:
        """Return the verdicts that are kept on moments, by their places."""
        stored = {at: self.cache.get(self._key(span)) for at, span in enumerate(spans)}
        return {
            at: Verdict(bool(each.get("present")), str(each.get("reason")))
            for at, each in stored.items()
            if each is not None
        }

    def keep(self, spans: Sequence[Span], made: Mapping[int, Verdict]) -> None:
        """Keep new ones by their places; a moment without a verdict is looked at again."""
        for at, verdict in made.items():
            if verdict.present is not None:
                self.cache.put(self._key(spans[at]), asdict(verdict))

    def _key(self, span: Span) -> str:
        asked = {"sought": self.sought, "model": self.role.model, "base_url": self.role.base_url}
        return cache_key({"kind": "verdict", "frames": FRAMES_A_MOMENT, **asked, **asdict(span)})


@contextmanager
def opened_verdicts(choice: ModelChoice, text: str) -> Iterator[KeptVerdicts | None]:
    """Open the verdicts that are kept of the model that looks; None without a cache."""
    role = looking_role(choice)
    if not choice.cache:
        yield None
        return
    with ResponseCache(choice.cache_path or cache_file()) as cache:
        yield KeptVerdicts(cache, role, one_line(text))
