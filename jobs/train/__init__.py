"""GRPO training of LongVideoAgent."""
