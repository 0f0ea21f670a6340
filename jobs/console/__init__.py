"""Tables, progress bars and reports on a terminal."""
