"""Commands that serve until Ctrl-C: pages in a browser, questions, and tools of an assistant.

May import jobs, agent and index when they run, and the options of the command line at once.
"""
