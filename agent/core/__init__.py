"""Question, Budget, Request/Exchange protocol, reply schemas."""
