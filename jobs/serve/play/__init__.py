"""Playing the videos of a library in the page, from where they were ingested.

`sources` finds the one file that a video's row names, `ranges` and `file_bytes` send parts of it, `ways` decides how a
browser can play it, `children` run the processes that open it, `captions` gives its transcript, `routes` answers.
No request names a path or an address: only a library's number and the id of one of its videos. May import index,
jobs.viewer and, as the only part of the server, pipeline.
"""
