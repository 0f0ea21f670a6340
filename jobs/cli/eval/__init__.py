"""`kinodex eval ...`."""
