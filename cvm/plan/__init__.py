"""How the engine will run a program: which instructions become one step, and where every value lies in memory."""
