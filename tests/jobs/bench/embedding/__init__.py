"""Tests of jobs/bench/embedding."""
