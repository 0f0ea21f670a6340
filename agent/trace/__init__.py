"""Events, JSONL trace, replay, follow-up."""
