grid=None
