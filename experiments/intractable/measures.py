measure=None
