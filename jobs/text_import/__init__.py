"""Text made elsewhere, captions or transcripts, brought into a library: read, matched to videos, written."""
