"""Tempered sampling of multimodal Stan posteriors inside Stan's own NUTS."""
