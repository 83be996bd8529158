"""Image transforms: rigid movements, smooth deformations, changes of tone, blur and cutout."""
