"""Evaluation: agents asked the same questions of a benchmark, their records kept, scored, compared and drawn."""
