"""Options about the ending of runs."""

from __future__ import annotations

import pytest

from kinodex.agent.protocol import AnswerRules
from kinodex.cli.options import answer_rules
from kinodex.jobs.errors import UsageError


def test_options_become_rules_and_contradictions_are_refused() -> None:
    assert answer_rules(False, False) == AnswerRules()
    assert answer_rules(True, False) == AnswerRules(force_choice=True)
    with pytest.raises(UsageError, match="contradict each other; give one of them"):
        answer_rules(True, True)
