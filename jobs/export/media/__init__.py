"""Moments as media: clips cut from the videos' own files, and stored frames as pictures.

May import pipeline.media, pipeline.sources, index, jobs.export.moments, jobs.export.texts and jobs.errors.
"""
