"""ldmatrix and stmatrix on a tile: who points at which row, what that costs, and what a swizzle or a pad does to it."""
