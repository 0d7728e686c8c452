claims=None
