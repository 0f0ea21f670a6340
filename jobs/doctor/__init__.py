"""What this machine can do: each part really tried, as far as that costs seconds."""
