"""Methods: each takes a model and settings and returns a fit; it knows no experiment."""
