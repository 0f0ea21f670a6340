"""Import of text that was made elsewhere, captions or transcripts: `kinodex import`. Read, match to videos, write.

May import pipeline, index, jobs/annotate (an import adds a stage) and the modules at the top of jobs.
"""
