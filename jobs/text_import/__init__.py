"""Text that was made elsewhere: captions and transcripts of files, matched to videos and added to a library.

Files are read in the forms that benchmarks publish, as subtitles, and in kinodex's own JSON lines.
"""
