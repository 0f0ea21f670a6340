"""Stories written by hand, and the truth of questions about any story."""
