"""What a worker is told."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from alipes.worker.setup import Setup, read_setup


def document(**changes: Any) -> str:
    setup = {
        "schema": 1,
        "model_name": "m",
        "model_version": 3,
        "model_file": "/models/m/3/model.py",
        "version_directory": "/models/m/3",
        "model_directory": "/models/m",
        "model_config": '{"name": "m"}',
        "decoupled": False,
        "max_batch_size": 8,
        "batches": True,
        "endpoint": False,
        "inputs": [{"name": "X", "datatype": "FP32"}],
        "outputs": [{"name": "Y", "datatype": "FP32"}],
        "framework": None,
        **changes,
    }
    return json.dumps({"setup": setup, "instance": {"name": "m_0_1", "index": 1, "kind": "GPU", "device_id": 2}})


def test_initialize_gets_seven_texts() -> None:
    assert Setup.parse(document()).arguments() == {
        "model_config": '{"name": "m"}',
        "model_instance_kind": "GPU",
        "model_instance_name": "m_0_1",
        "model_instance_device_id": "2",
        "model_repository": "/models/m",
        "model_version": "3",
        "model_name": "m",
    }


@pytest.mark.parametrize(("batches", "rows"), [(True, 8), (False, 0)])
def test_the_declaration_has_the_memory_to_claim(batches: bool, rows: int) -> None:
    declared = json.loads(Setup.parse(document(batches=batches)).declaration())
    assert declared == {
        "instance": "m_0_1",
        "model": "m",
        "inputs": [{"name": "X", "datatype": "FP32"}],
        "outputs": [{"name": "Y", "datatype": "FP32"}],
        "decoupled": False,
        "endpoint": False,
        "iterative": False,
        "max_rows": rows,
    }


def test_the_declaration_says_whether_requests_may_come_again() -> None:
    config = json.dumps({"name": "m", "sequence_batching": {"iterative_sequence": True}})
    assert json.loads(Setup.parse(document(model_config=config)).declaration())["iterative"]


def test_a_setup_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 2, this worker knows 1"):
        Setup.parse(document(schema=2))


def test_reading_closes_the_descriptor() -> None:
    descriptor = os.memfd_create("setup")
    os.write(descriptor, document().encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    assert read_setup(descriptor).model_version == 3
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
