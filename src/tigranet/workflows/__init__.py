"""What users ask for, as Python functions: train, evaluate, predict, explain, calibrate, export and others.

Every workflow takes keyword arguments and returns a frozen dataclass. None of them prints: a workflow that takes a
``console`` draws progress and short notices on it, and without one it is silent. The command line is a thin layer over
these functions.
"""
