"""Speed of the operations and of whole networks, compared with other implementations. Run ``make bench``."""
