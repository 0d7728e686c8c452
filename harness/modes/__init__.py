"""The modes of a posterior: regions of its draws with a barrier between them."""
