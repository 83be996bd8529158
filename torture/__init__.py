"""Hard conditions for the command line: signals at random moments, full disks, limits, and two processes at once."""
