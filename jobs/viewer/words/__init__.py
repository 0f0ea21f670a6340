"""Parts of a sentence about a round: the steps of agents, times, and lists.

May import the form of a trace's records, and nothing else of the project.
"""
