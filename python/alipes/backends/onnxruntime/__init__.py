"""Models that ONNX Runtime runs: where its library is, and how a version is completed, checked and described."""
