"""What runs the clients of a run: one module for each engine. All start `python -m alipes.batch.worker`."""
