"""Faults at every step: the n-th call on a disk, or request to a store, fails, and what a library is then."""
