"""Videos of a library for other programs: clips, frames, texts, annotations and data sets. `kinodex export`.

All but data sets are made of moments: ranges of videos with a label.
"""
