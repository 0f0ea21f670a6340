"""`kinodex export hf`: frames as a dataset folder that Hugging Face `datasets` opens: Parquet files and a card.

Needs pyarrow alone, not `datasets`. May import jobs.export.target_folder, jobs.errors and index.
"""
