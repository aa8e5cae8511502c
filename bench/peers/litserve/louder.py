import sys

import litserve


class Louder(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request["sound"], request.get("factor", 2.0)

    def predict(self, arguments):
        sound, factor = arguments
        return [factor * value for value in sound]

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    server = litserve.LitServer(Louder(api_path="/louder"), accelerator="cpu")
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")
