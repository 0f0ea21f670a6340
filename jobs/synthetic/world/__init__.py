"""The sketch world: scenes and films drawn by code, with captions and questions whose truth is known exactly.

May import `pipeline.images` (to encode a film) and nothing else of the project.
"""
