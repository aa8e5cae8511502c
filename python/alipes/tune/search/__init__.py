"""Ways through a space of points."""
