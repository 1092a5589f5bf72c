"""The bytes of a program file, and every other file that the machine reads or writes."""
