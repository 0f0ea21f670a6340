"""The model `similarity`: it answers requests from the library's own vectors and lines, without a language model.

`replies` has a function for each kind of request; `options` and `words` compare options with what a request shows.
"""
