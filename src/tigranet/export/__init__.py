"""Write networks in formats that other programs run."""
