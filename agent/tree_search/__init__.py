"""Search tree, anchors, coverage, reward fusion, frame memory."""
