"""Moments as one text each: subtitles, edit lists, time lines and tables.

May import jobs.export.moments and jobs.errors. Each format is one function from moments to a text.
"""
