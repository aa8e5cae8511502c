"""The OpenVINO backend: models of its own format and ONNX models, in worker processes."""
