"""The objects of KServe by which it runs servers of alipes: runtimes, services, graphs and trained models."""
