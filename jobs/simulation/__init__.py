"""`kinodex eval simulate`: question sets, trials, sweeps, their figures, plots and page. SIMULATION throughout.

May import `jobs.simulation.world`, the statistics and plot style of `jobs.evaluation`, and `agent`.
"""
