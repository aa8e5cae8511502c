"""What the real Model Analyzer makes of a file: run by the Python that has it, with the file's name; prints a document.

Nothing is started: its own reader of options, its own combinations of a configuration's values, and the headers of its
tables.
"""

import json
import sys
from argparse import Namespace

from model_analyzer.config.generate.generator_utils import GeneratorUtils
from model_analyzer.config.input.config_command_profile import ConfigCommandProfile
from model_analyzer.config.input.config_command_report import ConfigCommandReport
from model_analyzer.record.record import RecordType
from model_analyzer.result.result_table_manager import ResultTableManager


def main() -> None:
    """Reads the file, and prints what was read."""
    config = ConfigCommandProfile()
    config.set_config_values(Namespace(config_file=sys.argv[1], mode="online", **PROGRAMS))
    records = RecordType.get_all_record_types()
    headers = {**ResultTableManager.headers, **{tag: record.header() for tag, record in records.items()}}
    document = {
        "options": sorted(config.get_config()),
        "options_of_report": sorted(ConfigCommandReport().get_config()),
        "metrics": sorted(records),
        "headers": headers,
        "values": {name: config.get_config()[name].value() for name in PLAIN},
        "models": {model.model_name(): read(model) for model in config.profile_models},
    }
    json.dump(document, sys.stdout)


PROGRAMS = {"perf_analyzer_path": sys.executable, "triton_server_path": sys.executable}
"""Programs that have to be there, and are not started."""
PLAIN = (
    "client_protocol",
    "filename_model_gpu",
    "filename_model_inference",
    "filename_server_only",
    "gpu_output_fields",
    "inference_output_fields",
    "num_configs_per_model",
    "optuna_max_trials",
    "run_config_search_max_concurrency",
    "run_config_search_max_instance_count",
    "run_config_search_max_model_batch_size",
    "run_config_search_max_request_rate",
    "run_config_search_min_concurrency",
    "run_config_search_min_instance_count",
    "run_config_search_min_model_batch_size",
    "run_config_search_min_request_rate",
    "run_config_search_mode",
    "server_output_fields",
)


def read(model) -> dict:
    """A model's options; of its configuration every combination of values."""
    constraints = model.constraints().to_dict() if model.constraints() else {}
    wanted = model.model_config_parameters()
    return {
        "parameters": model.parameters(),
        "combinations": GeneratorUtils.generate_combinations(wanted) if wanted else [],
        "objectives": model.objectives(),
        "constraints": constraints,
        "weighting": model.weighting(),
    }


main()
