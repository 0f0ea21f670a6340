"""One video in, rows out: knows codecs and pictures, no database and no cluster."""
