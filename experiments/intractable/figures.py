figures=None
