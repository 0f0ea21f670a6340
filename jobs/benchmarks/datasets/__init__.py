"""One reader a benchmark: from its published annotation file to samples. May import `jobs.benchmarks` only."""
