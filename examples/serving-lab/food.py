"""The lab's eleven kinds of food, in the order of the network's scores."""

from typing import Final

CLASSES: Final = (
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
)
