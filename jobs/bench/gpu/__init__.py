"""Measure an ingest on a machine with a GPU, part by part and end to end: `kinodex bench gpu`."""
