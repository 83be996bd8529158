"""Detectors of images that show none of the known classes."""
