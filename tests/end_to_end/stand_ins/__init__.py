"""Tests of the rules that play a language model where agents are measured: they answer from what is on the wire."""
