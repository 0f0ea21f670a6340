"""Text on screen for tests: rows of it, and films that show it."""
