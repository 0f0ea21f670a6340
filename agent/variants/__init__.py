"""The agents: one file or one folder a paper."""
