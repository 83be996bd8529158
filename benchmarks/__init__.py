"""Speed of the operations and of whole networks, compared with other implementations. Run ``make bench``."""

import tigranet as tigranet  # before PyTorch, as on the command line: it decides how PyTorch's threads wait
