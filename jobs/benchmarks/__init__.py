"""Benchmarks as they are published: one file a benchmark reads its annotation files into the same items."""
