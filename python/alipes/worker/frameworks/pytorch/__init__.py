"""The program that runs models of PyTorch: TorchScript, archives of `torch.export`, weights beside a `model.py`.

`program` is where it begins. `archive` tells what a file is, `script`, `exported` and `factory` open one kind each,
`binding` maps the names of tensors to arguments and results, `module` calls, `probe` finds out what a file does not
say, and `shared_weights` keeps one copy of weights for all instances.
"""
