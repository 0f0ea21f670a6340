"""GRPO training of a LongVideoAgent master: `kinodex train master`.

May import `agent`, `index`, and of jobs what opens libraries and models. TRL is loaded only when training begins.
"""
