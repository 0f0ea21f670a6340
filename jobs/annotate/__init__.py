"""Optional stages of `kinodex add`, from captions to summaries, here or on Ray: settings, rows of a video, a run.

May import pipeline, index and agent, and of jobs the modules at its top; nothing of the other folders.
"""
