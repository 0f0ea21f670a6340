"""The structure of the code and the state of the test process, looked at.

Imports of the project only what it records.
"""
