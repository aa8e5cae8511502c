"""The lab's food classifier, with only its torchvision transform replaced by the same steps in Pillow and numpy."""

import base64
import io
import os

import numpy as np
import torch
import triton_python_backend_utils as pb_utils
from PIL import Image
from transform import transform


class TritonPythonModel:
    """Base64 of an image file in, label and probability out."""

    def initialize(self, args):
        """Loads the network onto the device that the server chose."""
        model_dir = os.path.dirname(__file__)  # noqa: PTH120
        model_path = os.path.join(model_dir, "food11.pth")  # noqa: PTH118

        # From args, get info about what device the model is supposed to be on
        instance_kind = args.get("model_instance_kind", "cpu").lower()
        if instance_kind == "gpu":
            device_id = int(args.get("model_instance_device_id", 0))
            torch.cuda.set_device(device_id)
            self.device = torch.device(f"cuda:{device_id}" if torch.cuda.is_available() else "cpu")
        else:
            self.device = torch.device("cpu")

        self.model = torch.load(model_path, map_location=self.device, weights_only=False)
        self.model.to(self.device)
        self.model.eval()

        self.transform = lambda image: torch.from_numpy(transform(image))

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
        """One picture as a tensor ``[1, 3, 224, 224]``."""
        if isinstance(image_data, str):
            image_data = base64.b64decode(image_data)
        if isinstance(image_data, bytes):
            image_data = image_data.decode("utf-8")
            image_data = base64.b64decode(image_data)
        # Left to choose, Pillow also tries readers that start other programs.
        image = Image.open(io.BytesIO(image_data), formats=("JPEG", "PNG", "WEBP")).convert("RGB")
        img_tensor = self.transform(image).unsqueeze(0)
        return img_tensor

    def execute(self, requests):
        """Runs the pictures of all requests as one batch."""
        # Gather inputs from all requests
        batched_inputs = []
        for request in requests:
            in_tensor = pb_utils.get_input_tensor_by_name(request, "INPUT_IMAGE")
            input_data_array = in_tensor.as_numpy()  # each assumed to be shape [1]
            # Preprocess each input (resulting in a tensor of shape [1, C, H, W])
            batched_inputs.append(self.preprocess(input_data_array[0, 0]))

        # Combine inputs along the batch dimension
        batched_tensor = torch.cat(batched_inputs, dim=0).to(self.device)
        print("BatchSize: ", len(batched_inputs))

        # Run inference once on the full batch
        with torch.no_grad():
            outputs = self.model(batched_tensor)

        # Process the outputs and split them for each request
        responses = []
        for i, _request in enumerate(requests):
            output = outputs[i : i + 1]  # select the i-th output
            prob, predicted_class = torch.max(output, 1)
            predicted_label = self.classes[predicted_class.item()]
            probability = torch.sigmoid(prob).item()

            # Create numpy arrays with shape [1, 1] for consistency.
            out_label_np = np.array([[predicted_label]], dtype=object)
            out_prob_np = np.array([[probability]], dtype=np.float32)
            out_tensor_label = pb_utils.Tensor("FOOD_LABEL", out_label_np)
            out_tensor_prob = pb_utils.Tensor("PROBABILITY", out_prob_np)
            inference_response = pb_utils.InferenceResponse(output_tensors=[out_tensor_label, out_tensor_prob])
            responses.append(inference_response)
        return responses
