"""Figures of networks and of measurements, and the HTML report.

Functions called ``draw_*`` draw data on given :class:`~matplotlib.axes.Axes`. Functions called ``save_*`` arrange such
axes on a page and write files.
"""
