"""Every defect that users of hermes had to work around has a test here that shows ours behaves.

A defect is fixed, or what it did is refused with words; none is copied. The table says which tests show it, by file and
name, so that renaming or dropping one of them is noticed here.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from support.syntax import syntax_tree

TESTS = Path(__file__).parents[1]

REPOSITORY = "unit/repository/test_model_repository.py"
CONFIG = "unit/repository/test_model_config.py"
EXPORT = "unit/repository/test_export.py"
ENSEMBLE = "unit/repository/test_ensemble_model.py"
TORCH = "e2e/test_export_torch.py"
BUCKETS = "e2e/test_export_buckets.py"
SIGNATURE = "unit/client/test_stream_signature.py"
READER = "unit/client/test_inference_reader.py"
CLIENT = "e2e/inference/test_inference_client.py"
ORDER = "e2e/inference/test_inference_order.py"
RECIPE = "unit/serve/test_serve_recipe.py"
SERVE = "e2e/serve/test_serve_context.py"
MONITOR = "e2e/monitor/test_server_monitor.py"
PIPELINE = "e2e/monitor/test_pipeline_processes.py"

# What was wrong there -> the tests that show how it is here.
TABLE: dict[str, list[tuple[str, str]]] = {
    "importing it imports every framework, and sets variables of the environment": [
        ("meta/test_imports.py", "test_importing_the_repository_loads_no_framework"),
        ("meta/test_imports.py", "test_an_import_sets_no_variable_and_starts_no_thread"),
    ],
    "one broken entry makes the whole repository unusable": [
        (REPOSITORY, "test_broken_entries_are_reported_and_the_others_can_be_used"),
    ],
    "a plain file in the repository ends its opening": [
        (REPOSITORY, "test_broken_entries_are_reported_and_the_others_can_be_used"),
    ],
    "deleting a repository keeps every second model in memory": [(REPOSITORY, "test_deleting_forgets_every_model")],
    "an export that fails leaves its inputs and outputs in the configuration": [
        (EXPORT, "test_an_export_that_fails_changes_neither_disk_nor_memory"),
    ],
    "an export to a bucket that fails leaves debris": [(BUCKETS, "test_an_export_that_fails_leaves_nothing")],
    "some exports give no path": [
        (TORCH, "test_a_script_is_written_with_the_names_that_servers_find"),
        ("e2e/test_export_keras.py", "test_a_model_is_written_with_its_own_names"),
    ],
    "what is set on a configuration is not written": [(CONFIG, "test_what_is_set_is_what_is_written")],
    "what adding a tensor returns is a copy": [(CONFIG, "test_a_declared_tensor_is_the_one_in_the_configuration")],
    "instance groups cannot be scaled by name": [
        (CONFIG, "test_instance_groups_are_added_and_scaled_by_index_and_by_name")
    ],
    "every tensor is declared as single precision": [(TORCH, "test_datatypes_are_those_of_the_model")],
    "exporting a module in training changes it": [
        (TORCH, "test_a_module_in_training_is_exported_for_inference_and_left_as_it_was"),
    ],
    "inputs reach arguments by their order in the configuration": [
        (TORCH, "test_inputs_are_passed_by_name"),
    ],
    "a script cannot be exported again without shapes": [
        (TORCH, "test_a_script_is_written_with_the_names_that_servers_find"),
    ],
    "a TensorRT plan takes a batch of one, and a profile for each input": [
        (EXPORT, "test_one_profile_of_a_plan_covers_all_inputs_and_batches"),
    ],
    "a TensorRT plan cannot be made of a model of the repository": [
        (EXPORT, "test_a_plan_is_built_of_the_newest_version_of_a_model"),
        (EXPORT, "test_a_plan_is_refused_where_it_cannot_be_built"),
    ],
    "in a bucket clean does nothing, names that begin alike are one, and deleting drops the bucket": [
        (BUCKETS, "test_clean_and_delete_keep_to_the_prefix"),
        (BUCKETS, "test_models_whose_names_begin_alike_are_left_alone"),
    ],
    "an input of an ensemble feeds one model": [
        (ENSEMBLE, "test_one_input_of_the_ensemble_can_feed_several_models"),
    ],
    "making a piped tensor an output cuts off its reader": [
        (ENSEMBLE, "test_a_tensor_can_be_piped_and_be_an_output"),
    ],
    "outputs of one name become one tensor": [(ENSEMBLE, "test_outputs_of_one_name_get_names_of_their_own")],
    "streaming models load only where there is a GPU": [
        ("unit/repository/test_streaming_models.py", "test_a_streaming_model_asks_for_no_gpu"),
    ],
    "the client's sixty seconds are sixty microseconds to the server": [
        (ORDER, "test_updates_of_a_sequence_carry_no_queue_timeout"),
        (ORDER, "test_a_timeout_in_seconds_is_sent_in_microseconds"),
    ],
    "updates reach an aggregator out of order": [
        (ENSEMBLE, "test_state_behind_several_instances_is_warned_of"),
        (
            "e2e/streaming/test_streaming_ensembles.py",
            "test_order_holds_across_instances",
        ),
    ],
    "a model that is not loaded is never loaded by the client": [
        (CLIENT, "test_a_model_that_is_not_loaded_is_loaded"),
    ],
    "a window that two models read has to be sent twice": [
        (SIGNATURE, "test_a_window_that_two_models_read_is_one_stream_under_either_name"),
        (READER, "test_a_stream_of_two_models_is_passed_once_under_either_name"),
    ],
    "several streams in one request are an attribute error": [
        (CLIENT, "test_several_streams_and_a_plain_input_go_together"),
        (READER, "test_parts_of_a_stream_are_joined_in_the_models_order"),
    ],
    "a request without an id is a type error": [(CLIENT, "test_requests_without_an_id_get_one")],
    "which GPUs are meant is told in two ways": [
        (RECIPE, "test_gpus_are_positions_in_the_environments_list"),
        (RECIPE, "test_a_gpu_that_is_not_there_is_a_value_error"),
    ],
    "the choice of GPUs never reaches the server": [
        (RECIPE, "test_which_gpus_are_seen_reaches_the_server_itself"),
        (SERVE, "test_the_gpus_of_a_script_reach_the_servers_own_environment"),
    ],
    "the monitor cannot watch the latest version": [
        (MONITOR, "test_the_latest_version_is_watched_where_none_is_named"),
    ],
    "servers that differ are a type error": [
        (MONITOR, "test_servers_that_serve_something_else_are_refused_with_what_each_has"),
        (
            "unit/monitor/test_servers_agree.py",
            "test_servers_with_different_models_are_a_value_error",
        ),
    ],
    "counters with a decimal point, or labels in another order, end the monitor": [
        ("unit/monitor/test_prometheus_page.py", "test_a_line_is_a_name_labels_in_any_order_and_a_number"),
        ("unit/monitor/test_ledger.py", "test_numbers_with_a_fraction_are_rounded"),
    ],
    "a monitor that fails does so in silence": [
        (MONITOR, "test_a_server_that_never_answered_is_an_error_when_the_block_ends"),
        (MONITOR, "test_a_monitor_that_is_killed_is_an_error_when_the_block_ends"),
        (MONITOR, "test_a_file_that_cannot_be_written_is_an_error_before_the_block"),
    ],
    "whoever reads from a process that was killed waits for ever": [
        (PIPELINE, "test_a_process_that_others_have_ended_is_an_error_for_its_reader"),
        (PIPELINE, "test_a_process_in_the_midst_of_others_that_was_ended_is_an_error"),
    ],
    "a child of a script asks whoever has the usual port": [
        (SERVE, "test_children_of_a_script_find_its_server_and_not_a_stranger"),
    ],
    # Traps that are no defects by themselves.
    "a server that began again gives rows below zero": [
        (MONITOR, "test_a_server_that_began_again_gives_no_negative_row"),
    ],
    "three values whose middle is an exception are raised": [
        (
            "unit/client/test_inference_parts.py",
            "test_a_tuple_with_an_exception_is_an_ordinary_answer",
        ),
    ],
    "what was there is lost when an error is raised": [
        (
            "unit/client/test_inference_parts.py",
            "test_an_exception_is_raised_after_the_answers_before_it",
        ),
    ],
    "leaving with an exception reaches into another library": [
        (CLIENT, "test_leaving_with_an_exception_waits_for_nothing"),
    ],
    "waiting asks without a pause, for a server that may serve nothing yet": [
        (
            "unit/serve/test_serve_readiness.py",
            "test_between_two_looks_at_a_server_there_is_a_pause_that_grows",
        ),
        (SERVE, "test_a_wait_may_come_with_the_start"),
        (SERVE, "test_a_model_that_cannot_be_loaded_ends_the_wait_with_its_reason"),
        (SERVE, "test_a_time_out_is_what_python_and_older_scripts_catch"),
    ],
    "a name is taken for a pattern": [(REPOSITORY, "test_a_name_is_added_once_unless_forced")],
    "who reads a configuration meanwhile sees half of it": [
        (EXPORT, "test_a_configuration_is_replaced_atomically"),
        (EXPORT, "test_only_abandoned_staging_folders_are_swept"),
        (BUCKETS, "test_a_configuration_is_replaced_only_while_unchanged"),
    ],
    "whoever reaches the endpoint that builds plans runs code there": [
        (EXPORT, "test_a_plan_is_refused_where_it_cannot_be_built"),
    ],
}


@cache
def defined_in(file: str) -> frozenset[str]:
    tree = syntax_tree(TESTS / file)
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("defect", TABLE)
def test_a_test_shows_that_ours_behaves(defect: str) -> None:
    missing = [f"{file}::{name}" for file, name in TABLE[defect] if name not in defined_in(file)]
    assert TABLE[defect]
    assert missing == []
