"""The tables of the paper, and further ones of this project, as data; and the code that measures them."""
