"""The roof: it joins pipeline, index and agent into commands, servers, benchmarks and runs on clusters.

May import every room; nothing imports it except the front door `kinodex`. Modules directly here are shared by its folders.
"""
