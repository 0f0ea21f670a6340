"""The roof: it joins pipeline, index and agent into commands, servers, benchmarks and runs on clusters.

May import every room; only the front door `kinodex` imports it. Modules directly here are shared by its folders.
"""
