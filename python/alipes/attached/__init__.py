"""Models whose instances are objects of this script: closures, a network on its device, whatever cannot be pickled.

    from alipes.attached import AttachedModel, Attachment, InferenceResponse, Tensor

    def double(requests):
        return [InferenceResponse([Tensor("y", 2 * request.inputs()[0].as_numpy())]) for request in requests]

    config = {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}]}
    with Attachment([AttachedModel("double", config, [double])]) as attachment:
        attachment.wait()

The server is a child process of the script and ends with it. It hands the link of each instance over, as descriptors,
to a thread of the script, which is then a worker like those of the server's own: tensors lie in shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "AttachedModel",
    "Attachment",
    "InferenceRequest",
    "InferenceResponse",
    "Tensor",
    "TritonError",
    "TritonModelException",
]

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse, Tensor, TritonError, TritonModelException
    from alipes.attached.attachment import Attachment
    from alipes.attached.model import AttachedModel

_HOMES = {
    "AttachedModel": "alipes.attached.model",
    "Attachment": "alipes.attached.attachment",
    "InferenceRequest": "alipes._core",
    "InferenceResponse": "alipes._core",
    "Tensor": "alipes._core",
    "TritonError": "alipes._core",
    "TritonModelException": "alipes._core",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
