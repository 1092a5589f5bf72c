"""What becomes of every real model at hand, written down in models.json and compared: nothing gets worse unnoticed."""
