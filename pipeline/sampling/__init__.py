"""One chunk of one video -> JPEGs and model inputs, in a sandbox process."""
