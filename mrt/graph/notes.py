"""Words that rewriting leaves on values, as metadata of the graph, for calibration and quantisation to read."""

ONE_RANGE = "mrt.one_range"
"""Values with the same word here are watched as one, such as a state's steps."""

BYTES = "mrt.bytes"
"""On an input that takes a picture's bytes: the order of axes that the model wants, NHWC or NCHW."""

INDICES = "mrt.indices"
"""On an input that looks things up: the interval of the axis, as two numbers."""

COMPARED = "mrt.compared"
"""On an input of whole numbers that is held against constants: their interval, as two numbers."""

DUPLICATES = "mrt.twins"
"""On a value with channels that are the same as others: pairs "channel:other", to be rounded half a step apart."""
