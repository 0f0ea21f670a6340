"""Plan, solve, record."""
