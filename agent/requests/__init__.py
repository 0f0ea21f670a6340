"""Requests that several agents share."""
