"""Towers without torch: text in numpy, pictures by ONNX Runtime, kept with a library.

May import index.errors and its neighbours in index.embedding. Modules that export load torch, only inside functions.
"""
