"""What several tests share: makers of programs, graphs and files, second implementations, and where the real data lies."""
