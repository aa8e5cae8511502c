"""A soak: a server under honest traffic and faults for hours, its memory and the like recorded and drawn as slopes.

`python -m support.soak FOLDER SECONDS` runs one, `python -m support.soak FOLDER` draws what is recorded there.
"""
