"""Parts of a sentence about a round: steps of agents, times, and lists. May import the form of a trace's records."""
