"""What a browser draws of traces, runs and libraries: `kinodex view`."""
