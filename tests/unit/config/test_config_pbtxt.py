from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.pbtxt import parse_pbtxt, read_config, to_pbtxt
from alipes.errors import ConfigError


def test_the_forms_that_people_write_are_read() -> None:
    config = parse_pbtxt("""
        # a comment
        name: "m",
        max_batch_size: 8;
        input [ { name: "A" dims: [ 1, 2 ] }, { name: "B" } ]
        input { name: "C" }
        parameters { key: "one" value: { string_value: "1" } }
        parameters: [ { key: "two" value { string_value: "2" } } ]
        version_policy: { specific: { versions: [ 1, 3 ] } }
    """)
    assert (config.name, config.max_batch_size) == ("m", 8)
    assert [tensor.name for tensor in config.input] == ["A", "B", "C"]
    assert {key: value.string_value for key, value in config.parameters.items()} == {"one": "1", "two": "2"}
    assert list(config.version_policy.specific.versions) == [1, 3]


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('name: "m"\nmax_batch_sise: 4', 2, 'has no field named "max_batch_sise"', "did you mean 'max_batch_size'?"),
        ("input { nam: 1 }", 1, 'Message type "inference.ModelInput" has no field', "did you mean 'name'?"),
        ("input { data_type: FP32 }", 1, "has no value named FP32", "did you mean 'TYPE_FP32'?"),
        ("optimization { zzz: 1 }", 1, 'has no field named "zzz"', None),
        ("max_batch_size: many", 1, "Couldn't parse integer: many", None),
        ("max_batch_size: 99999999999", 1, "Value out of range", None),
        ("\n\ninput [", 3, 'Expected "{"', None),
        ("dynamic_batching {} sequence_batching {}", 1, 'another member of oneof "scheduling_choice"', None),
        ('name: "a" name: "b"', 1, 'should not have multiple "name" fields', None),
    ],
)
def test_an_error_says_where_and_what_was_probably_meant(text: str, line: int, message: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pbtxt(text)
    assert caught.value.line == line
    assert message in str(caught.value)
    assert f": {line}:" in str(caught.value)
    assert caught.value.hint == hint


@pytest.mark.parametrize("number", ["7777777777", "-2147483649", "0x80000000"])
def test_a_number_of_an_enumeration_beyond_its_range_has_a_place(number: str) -> None:
    with pytest.raises(ConfigError, match=r": 2:13: Value out of range") as failure:
        parse_pbtxt(f'input [{{ name: "X"\n data_type: {number} }}]')
    assert failure.value.line == 2


def test_an_absent_file_is_no_configuration(tmp_path: Path) -> None:
    assert read_config(tmp_path) is None


def test_a_file_error_names_the_file_once(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_text("max_batch_sise: 4")
    with pytest.raises(ConfigError) as caught:
        read_config(tmp_path)
    assert caught.value.path == tmp_path / "config.pbtxt"
    assert caught.value.key == "max_batch_sise"
    assert caught.value.explain() == (
        f"failed to read text proto from {tmp_path / 'config.pbtxt'}: 1:1: Message type "
        '"inference.ModelConfig" has no field named "max_batch_sise" (did you mean \'max_batch_size\'?)'
    )


def test_a_named_configuration_wins_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "config.pbtxt").write_text('name: "plain"')
    (tmp_path / "configs" / "big.pbtxt").write_text('name: "big"')
    names = [read_config(tmp_path, name) for name in ("", "big", "small")]
    assert [config.name for config in names if config is not None] == ["plain", "big", "plain"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b'name: "\xc3\x28"'])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.pbtxt").write_bytes(content)
    with pytest.raises(ConfigError, match="failed to read text proto from"):
        read_config(tmp_path)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").mkdir()
    with pytest.raises(ConfigError, match="failed to read text proto from"):
        read_config(tmp_path)


def test_what_is_written_is_read_back() -> None:
    config = parse_pbtxt('name: "m" metric_tags { key: "a" value: "b" } dynamic_batching { }')
    assert parse_pbtxt(to_pbtxt(config)) == config
