"""The built-in model: rules that answer typed requests from the library's own vectors and words.

It needs no server, no key and no language model.
"""
