"""Moments, captions and detections as annotations for the programs where people look at and correct them.

May import index, jobs.export.media, jobs.export.moments, jobs.export.texts and jobs.export.target_folder.
"""
