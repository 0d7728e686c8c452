"""Tempering baselines driven from Python, on the log density of any Stan program or function.

Rooms: ``cost`` (what a run has cost so far), ``path`` (the tempered path between a base and the
target, for many chains at once), ``kernels`` (transitions along it),
``ladders``, ``annealing`` (passes up and down a ladder) and ``rungs`` (log Z along one), one module
a method, and ``result`` (draws become a fit).
"""
