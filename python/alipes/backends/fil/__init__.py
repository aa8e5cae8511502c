"""Models of trees as Triton lays them out for its backend `fil`."""
