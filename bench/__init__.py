"""The bench: alipes beside the floors, its peers and a raw engine loop, as ratios taken in one run."""
