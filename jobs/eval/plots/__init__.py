"""Plots of a report, saved as SVG and PNG: of accuracy, and of the search.

`drawing` has what all of them share.
"""
