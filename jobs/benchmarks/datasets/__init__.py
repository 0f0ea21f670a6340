"""One reader a benchmark."""
