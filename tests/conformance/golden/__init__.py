"""Replays recorded exchanges against `alipes serve`."""
