"""Unrolling of LSTM, GRU and RNN."""
