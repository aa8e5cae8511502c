"""The network, under the name by which the tutorial's export script imports it.

The tutorial's own has 44 million parameters and was trained for days on rendered scenes. This one has the same inputs
and outputs and fewer than 200,000 parameters: convolutions that halve the height until one row of columns is left, and
a guess for each column.
"""

from __future__ import annotations

from torch import Tensor, nn


class STRModel(nn.Module):
    """Reads the word in a picture of 32 x 100 pixels: a score of each character, or of none, in each of 26 columns."""

    def __init__(self, input_channels: int, output_channels: int, num_classes: int) -> None:
        """Takes the channels of the picture, those of the last convolution, and the characters with the blank."""
        super().__init__()
        widths = [output_channels // part for part in (32, 16, 8, 4, 2, 1)]
        first = nn.Conv2d(input_channels, widths[0], 3, stride=2, padding=1, bias=False)
        self.columns = nn.Sequential(
            first,
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            # Two columns of padding make 26 columns of 50.
            *_separable(widths[0], widths[1], stride=(2, 2), padding=(1, 2)),
            *_separable(widths[1], widths[2], stride=(2, 1)),
            *_separable(widths[2], widths[3], stride=(2, 1)),
            *_separable(widths[3], widths[4], stride=(2, 1)),
            *_separable(widths[4], widths[5], stride=(1, 1)),
        )
        self.prediction = nn.Linear(output_channels, num_classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Takes FP32 `[batch, channels, 32, 100]` of -1 to 1 and gives FP32 `[batch, 26, num_classes]`."""
        rows = self.columns(pictures)
        return self.prediction(rows.squeeze(2).permute(0, 2, 1))


def _separable(
    channels: int, wider: int, stride: tuple[int, int], padding: tuple[int, int] = (1, 1)
) -> tuple[nn.Module, ...]:
    """A convolution of each channel by itself, then one that mixes them: a tenth of the weights of a whole one."""
    return (
        nn.Conv2d(channels, channels, 3, stride=stride, padding=padding, groups=channels, bias=False),
        nn.BatchNorm2d(channels),
        nn.Conv2d(channels, wider, 1, bias=False),
        nn.BatchNorm2d(wider),
        nn.ReLU(),
    )
