"""Additions to a library, from captions to summaries, here or on Ray: settings, rows of a video, a run. `kinodex add`.

Text that was made elsewhere comes in by `kinodex.jobs.text_import`.
"""
