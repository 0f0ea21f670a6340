"""A task of lmms-eval over drawn films; a test copies the folder and fills in the path of their questions."""
