"""Tempering baselines driven from Python, on the log density of any Stan program or function.

Shared modules: ``cost`` (what a run has cost so far), ``geometric_path`` (the tempered path between
a base and the target, for many chains at once), ``kernels`` (transitions along it), ``ladders``,
``annealing`` (passes up and down a ladder), ``rungs`` (log Z along a ladder) and ``result`` (turns
draws into a fit).  Each method has a module of its own.
"""
