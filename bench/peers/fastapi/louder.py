from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Louder(BaseModel):
    sound: list[float]
    factor: float = 2.0


@app.post("/louder")
async def louder(request: Louder) -> list[float]:
    return [request.factor * value for value in request.sound]
