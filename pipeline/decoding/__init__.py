"""Containers, timestamps and decoders: from one local file to the frames shown at sample instants, with exact times.

A decoder more is a module here with a reader of the protocol in `stream`, named in `open`.
"""
