"""The lab's food classifier on ONNX Runtime: base64 of an image file in, label and probability out."""

import base64
import io
import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from PIL import Image
from transform import transform


class TritonPythonModel:
    """As in the lab, line by line; only the transform and the network are not torch's."""

    def initialize(self, args):
        """Loads the network that lies beside this file."""
        model_dir = os.path.dirname(__file__)  # noqa: PTH120
        model_path = os.path.join(model_dir, "food11.onnx")  # noqa: PTH118
        # Two instances share two cores: a thread for each.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.model = onnxruntime.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
        self.transform = transform
        self.classes = np.array(
            [
                "Bread",
                "Dairy product",
                "Dessert",
                "Egg",
                "Fried food",
                "Meat",
                "Noodles/Pasta",
                "Rice",
                "Seafood",
                "Soup",
                "Vegetable/Fruit",
            ]
        )

    def preprocess(self, image_data):
        """One picture as FP32 ``[1, 3, 224, 224]``."""
        if isinstance(image_data, str):
            image_data = base64.b64decode(image_data)
        if isinstance(image_data, bytes):
            image_data = image_data.decode("utf-8")
            image_data = base64.b64decode(image_data)
        # Left to choose, Pillow also tries readers that start other programs.
        image = Image.open(io.BytesIO(image_data), formats=("JPEG", "PNG", "WEBP")).convert("RGB")
        return self.transform(image)[np.newaxis]

    def execute(self, requests):
        """Runs the pictures of all requests as one batch."""
        # Gather inputs from all requests
        batched_inputs = []
        for request in requests:
            in_tensor = pb_utils.get_input_tensor_by_name(request, "INPUT_IMAGE")
            input_data_array = in_tensor.as_numpy()
            batched_inputs.append(self.preprocess(input_data_array[0, 0]))

        # Combine inputs along the batch dimension
        batched_tensor = np.concatenate(batched_inputs, axis=0)
        print("BatchSize: ", len(batched_inputs))

        # Run inference once on the full batch
        outputs = self.model.run(["output"], {"input": batched_tensor})[0]

        # Process the outputs and split them for each request
        responses = []
        for i, _ in enumerate(requests):
            predicted_class = outputs[i].argmax()
            predicted_label = self.classes[predicted_class]
            probability = 1 / (1 + np.exp(-outputs[i, predicted_class]))

            # Create numpy arrays with shape [1, 1] for consistency.
            out_label_np = np.array([[predicted_label]], dtype=object)
            out_prob_np = np.array([[probability]], dtype=np.float32)
            out_tensor_label = pb_utils.Tensor("FOOD_LABEL", out_label_np)
            out_tensor_prob = pb_utils.Tensor("PROBABILITY", out_prob_np)
            responses.append(pb_utils.InferenceResponse(output_tensors=[out_tensor_label, out_tensor_prob]))
        return responses
