"""Output on a terminal: tables, progress bars, reports and the search tree, with text of files escaped.

May import index and agent, and the types that ingest and annotate report their progress in; commands import it.
"""
