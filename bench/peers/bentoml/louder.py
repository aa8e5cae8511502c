import bentoml


@bentoml.service(logging={"access": {"enabled": False}})
class Louder:
    @bentoml.api
    def louder(self, sound: list[float], factor: float = 2.0) -> list[float]:
        return [factor * value for value in sound]
