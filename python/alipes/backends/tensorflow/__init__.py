"""The TensorFlow backend: SavedModels and files of Keras, in worker processes."""
