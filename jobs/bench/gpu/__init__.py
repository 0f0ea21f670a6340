"""`kinodex bench gpu`: an ingest on a machine with a GPU, stage by stage and end to end, in less than ten minutes.

A film to measure on, the ways that the machine has, rates of the stages, whole ingests and their rows compared.
"""
