from mosec import Server, Worker


class Louder(Worker):
    def forward(self, data: dict) -> list[float]:
        factor = data.get("factor", 2.0)
        return [factor * value for value in data["sound"]]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Louder, route="/louder")
    server.run()
