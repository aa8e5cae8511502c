"""InferenceGraphs of KServe: read, checked, and written for the data plane, which runs them."""
