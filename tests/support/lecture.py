"""The first model of a lecture about inference as a service, and the configuration that belongs to it."""

from __future__ import annotations

INPUT_SIZE = 64

CONFIG = """\
name: "my-model"
platform: "onnxruntime_onnx"
input {
  name: "x"
  data_type: TYPE_FP32
  dims: -1
  dims: 64
}
output {
  name: "y"
  data_type: TYPE_FP32
  dims: -1
  dims: 1
}
"""
SCALED = CONFIG + "instance_group {\n  count: 4\n  kind: KIND_GPU\n}\n"
