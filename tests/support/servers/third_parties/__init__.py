"""Servers that others wrote, each started in a process of its own on loopback.

May import what `tests.support.servers` may.
"""
