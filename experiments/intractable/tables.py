tables=None
