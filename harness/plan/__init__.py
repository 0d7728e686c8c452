"""What an experiment is, as plain data: its grid, its claims, and where to find experiments."""
