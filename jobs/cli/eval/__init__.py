"""The commands of `kinodex eval`: parse options, call `jobs.evaluation` or `jobs.simulation`, print."""
