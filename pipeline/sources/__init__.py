"""Sources: find video files and their subtitles in folders and remote stores, fetch them, identify them by their bytes.

May import `pipeline.errors` and `pipeline.playlists` only.
"""
