"""Templates and their renderer."""
