"""Image transforms: rigid movements, smooth deformations and changes of tone."""
