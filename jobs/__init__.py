"""The roof: what joins pipeline, index and agent, and the command line."""
