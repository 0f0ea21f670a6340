"""Optional stages of `kinodex add`: captions, detections, speech and vectors of further spaces, here or on Ray.

May import pipeline, index and agent, and of jobs the modules at its top; nothing of the other folders.
"""
