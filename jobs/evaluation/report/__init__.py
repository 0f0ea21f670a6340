"""Show a report: tables for a terminal or Markdown, plots, and a page.

May import `jobs.evaluation.score` and `jobs.evaluation.run`; matplotlib and jinja2 load when they are used.
"""
