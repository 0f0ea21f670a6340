"""Sampling: one chunk of one video to JPEGs and model inputs, in a sandbox process or on a GPU.

May import every other folder of `pipeline`, but not `pipeline.models`.
"""
