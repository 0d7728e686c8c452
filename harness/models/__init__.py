"""Models we ship: data builders, with the ground truth of each beside its builder."""
