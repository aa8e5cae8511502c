"""The script that starts a worker, in any Python that can run a model: alipes need not be installed there.

Usage::

    <interpreter> <folder>/bootstrap.py                             a worker; its link comes as inherited descriptors
    <interpreter> <folder>/bootstrap.py --complete REQUEST RESULT   asks a model for its configuration, and ends
    <interpreter> <folder>/bootstrap.py --describe RESULT SOCKET   asks an app what it has, and waits to be a worker

It finds the package that it is part of by its own place, and adds no folder to `sys.path`: the packages beside it may
be of another Python than the one that runs it. It is written so that an old Python can say that it is too old.
"""

import importlib.util
import json
import sys
import sysconfig
from pathlib import Path

OLDEST = (3, 11)
PACKAGE = Path(__file__).resolve().parent.parent


def refusal() -> str:
    """Why this Python cannot run a worker; empty where it can."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    name = f"{sys.executable} (Python {version})"
    if sys.version_info < OLDEST:
        return f"{name} cannot run Python models: Python {OLDEST[0]}.{OLDEST[1]} or newer is needed"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"{name} cannot run Python models: it is a free-threaded build, an ordinary one is needed"
    return ""


def load_package() -> None:
    """Makes `import alipes` find the package that this file is part of."""
    spec = importlib.util.spec_from_file_location(
        "alipes", str(PACKAGE / "__init__.py"), submodule_search_locations=[str(PACKAGE)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{PACKAGE} holds no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules["alipes"] = module
    spec.loader.exec_module(module)


def main() -> int:
    """Runs a worker, or asks a model for its configuration, or an app what it has."""
    # A script's folder leads `sys.path`: a model's `import loop` would find ours.
    sys.path[:] = [folder for folder in sys.path if not folder or Path(folder).resolve() != PACKAGE / "worker"]
    arguments = sys.argv[1:]
    reason = refusal()
    if reason and arguments[:1] == ["--complete"]:
        Path(arguments[2]).write_text(json.dumps({"error": reason}), encoding="utf-8")
        return 0
    if reason:
        sys.stderr.write(reason + "\n")
        return 1
    load_package()
    from alipes.worker.main import complete, describe_app, serve

    match arguments:
        case ["--complete", request, result]:
            return complete(Path(request), Path(result))
        case ["--describe", result, waiting]:
            return describe_app(int(result), int(waiting))
    return serve()


def prepare_helper() -> None:
    """Lets a process that the model started with `multiprocessing` import the model's file again."""
    if "alipes" not in sys.modules:
        load_package()
    from alipes.worker.triton.install import install

    install()


if __name__ == "__main__":
    sys.exit(main())
elif __name__ == "__mp_main__":
    prepare_helper()
