"""Runs of agents as spans of OpenTelemetry, for the collector that `--otlp` names.

May import agent, index and jobs.errors. `opentelemetry` is imported here alone (extra `otel`).
"""
