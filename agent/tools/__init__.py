"""What agents call: captions on demand, detection, uniform frames."""
