"""Towers without torch, kept with a library: text in numpy, pictures by ONNX Runtime, or of a ResNet in numpy.

May import index.errors and its neighbours in index.embedding. Modules that export load torch, only inside functions.
"""
