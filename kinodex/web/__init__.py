"""Pages and endpoints of `kinodex serve` and `kinodex export page`: look, ask, search and play in a browser or by HTTP.

`app` puts the parts together; the page itself is in `static`.
"""
