"""How fast the three operations and the whole network are, beside other ways to do the same. Run: ``make bench``."""
