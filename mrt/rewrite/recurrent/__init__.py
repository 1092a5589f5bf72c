"""LSTM, GRU and RNN, unrolled."""
