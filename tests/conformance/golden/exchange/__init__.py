"""One file per door: sends what a step describes, gives back the answer in the form of the expectation."""
