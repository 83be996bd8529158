"""Networks that are not part of the library yet, with the commands that measured them."""
