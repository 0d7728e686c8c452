"""The models that we ship: each is built from its data and has its truth, where it is known."""
