"""GRPO training of a LongVideoAgent master. `kinodex train master`.

An experiment, whose interface may change.
"""
