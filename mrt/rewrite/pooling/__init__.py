"""Average, max, Lp and global pools, and MaxUnpool."""
