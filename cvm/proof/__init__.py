"""The proof that a program may run: its rules, its intervals, how much room they leave, and what it costs."""
