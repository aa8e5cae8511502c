"""Models that stream: their sizes, what makes them, and what joins them to an ensemble. See `alipes.streaming`."""
