import alipes


@alipes.model
def louder(sound: list[float], factor: float = 2.0) -> list[float]:
    return [factor * value for value in sound]
