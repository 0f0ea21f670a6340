"""`kinodex eval simulate`: question sets, trials, sweeps, their figures, plots and page. SIMULATION throughout."""
