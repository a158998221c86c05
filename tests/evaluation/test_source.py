"""Files as they come: every way in which one can be broken is told with its place and a way out."""

import csv
import json
import logging
from pathlib import Path

import datasets
import pandas as pd
import pytest

from veedor.errors import EvaluationSetError
from veedor.evaluation.source import read_table


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path: Path) -> str:
    with pytest.raises(EvaluationSetError) as caught:
        read_table(path)
    return str(caught.value)


def saved(folder: Path, data: datasets.Dataset | datasets.DatasetDict) -> Path:
    datasets.disable_progress_bars()
    data.save_to_disk(folder)
    return folder


@pytest.fixture
def labelled() -> datasets.Dataset:
    kinds = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["negative", "positive"]),
            "control": datasets.Value("bool"),
            "score": datasets.Value("float64"),
            "tokens": datasets.List(datasets.Value("string")),
        }
    )
    columns = {
        "text": ["a man", "a woman"],
        "label": [1, -1],
        "control": [True, None],
        "score": [2.0, float("nan")],
        "tokens": [["a"], []],
    }
    return datasets.Dataset.from_dict(columns, features=kinds)


def test_csv_values_stay_strings_even_where_pandas_would_see_a_missing_value(tmp_path):
    table = read_table(written(tmp_path, "a.csv", 'text,label\nNA,null\n"x,\ny",01\n'))
    assert table.to_dict("list") == {"text": ["NA", "x,\ny"], "label": ["null", "01"]}


@pytest.mark.parametrize("name", ["a[1].csv", "*.csv", "it's.csv", "a::b.csv", ".hidden.csv"])
def test_a_file_name_is_never_a_pattern_or_an_address(tmp_path, name):
    written(tmp_path, "a1.csv", "text\nwrong file\n")
    assert list(read_table(written(tmp_path, name, "text\nright file\n"))["text"]) == ["right file"]


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ";"), ("a.tsv", "\t"), ("a.csv", ",")])
def test_the_separator_is_the_one_that_makes_a_text_column(tmp_path, name, mark):
    table = read_table(written(tmp_path, name, f"text{mark}label\none{mark}x\n"))
    assert table.to_dict("list") == {"text": ["one"], "label": ["x"]}


def test_a_byte_order_mark_and_blanks_around_names_are_no_part_of_a_name(tmp_path):
    table = read_table(written(tmp_path, "a.csv", b"\xef\xbb\xbftext, label\na,b\n"))
    assert list(table.columns) == ["text", "label"]


def test_line_separators_inside_a_text_do_not_end_a_row(tmp_path):
    table = read_table(written(tmp_path, "a.csv", "text,label\na\u2028b\x0bc,1\n"))
    assert list(table["text"]) == ["a\u2028b\x0bc"]


def test_a_text_of_a_million_characters_is_read_whole_and_leaves_the_csv_module_as_it_was(tmp_path):
    before = csv.field_size_limit()
    table = read_table(written(tmp_path, "a.csv", f"text\n{'x' * 1_000_000}\n"))
    assert len(table["text"][0]) == 1_000_000
    assert csv.field_size_limit() == before


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.csv does not exist" in refused(tmp_path / "nowhere.csv")


def test_an_unknown_ending_is_answered_with_the_known_ones(tmp_path):
    message = refused(written(tmp_path, "a.xlsx", "text"))
    assert "'.xlsx'" in message
    assert ".csv" in message and ".parquet" in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty (0 bytes)"),
        (" \n\n", "only blanks"),
        ("text,label\n", "has a header (text, label) but no rows"),
        ("text,label,text\na,b,c\n", "names the column 'text' twice"),
        ("text,label\na,b\nI know, you know,c\n", "line 3: 3 fields, but the header names 2"),
        ('text,label\na,b\n"never closed,b\n', "line 3: unexpected end of data"),
        (b"text\nhola\nse\xf1or\n", "byte 0xf1 at offset 12, line 3"),
        (b"\xef\xbb\xbftext\n\xff\n", "byte 0xff at offset 8, line 2"),
        ("text\na\n".encode("utf-16"), "is UTF-16"),
        (b"text\na\nb\x00c\n", "NUL byte (byte 8, line 3)"),
    ],
)
def test_a_broken_csv_file_is_told_with_its_place(tmp_path, content, says):
    assert says in refused(written(tmp_path, "a.csv", content))


@pytest.mark.parametrize("first", ["I am a tall woman.,positive", "I met a man at the bus", "12,13", "x" * 300])
def test_a_file_without_header_is_shown_its_first_line_cut_short(tmp_path, first):
    message = refused(written(tmp_path, "a.csv", f"{first}\nanother row,negative\n"))
    assert "has no header" in message
    assert first[:80] in message
    assert first[:81] not in message or len(first) <= 80
    assert "text,label" in message


def test_json_lines_keep_types_as_they_are_written_and_dates_as_strings(tmp_path):
    lines = ['{"text": "a", "n": 1, "day": "2020-01-01"}', "", '{"text": "b", "control": true, "n": null}']
    table = read_table(written(tmp_path, "a.jsonl", "\n".join(lines)))
    assert table.to_dict("list") == {
        "text": ["a", "b"],
        "n": ["1", None],
        "day": ["2020-01-01", None],
        "control": [None, "true"],
    }


@pytest.mark.parametrize("content", ['[{"text": "a"}, {"text": "b"}]', '{"text": "a"}\n{"text": "b"}\n'])
def test_a_json_file_may_be_a_list_or_json_lines(tmp_path, content):
    assert list(read_table(written(tmp_path, "a.json", content))["text"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text":\n', "line 2: no JSON"),
        ("a.jsonl", '{"text": "a"}\n["a"]\n', "line 2: ['a']; expected an object"),
        ("a.jsonl", '{"text": "a"}\n{"text": 5}\n', "line 2: text is 5 (int)"),
        ("a.jsonl", '{"text": "\\ud800"}\n', "line 1: text holds half a surrogate pair"),
        ("a.jsonl", '{"text": "a\\u0000b"}\n', "row 1, column 'text': holds a NUL character"),
        ("a.jsonl", "\n\n", "holds no rows"),
        ("a.json", "[]", "holds no rows"),
        ("a.json", '[{"text": "a", "label": NaN}]', "NaN is no value"),
        ("a.json", '{"rows": []}', "holds a dict; expected a list of objects"),
        ("a.json", '[{"text": "a"}', "is no JSON"),
        ("a.parquet", b"PAR1 and nothing else", "cannot be read"),
    ],
)
def test_a_broken_json_or_parquet_file_is_told_with_its_place(tmp_path, name, content, says):
    assert says in refused(written(tmp_path, name, content))


def test_a_saved_data_set_gives_class_names_truth_values_and_whole_numbers_as_csv_would(tmp_path, labelled):
    table = read_table(saved(tmp_path / "set", labelled))
    assert table.to_dict("list") == {
        "text": ["a man", "a woman"],
        "label": ["positive", None],
        "control": ["true", None],
        "score": ["2", None],
        "tokens": [None, None],
    }


def test_parquet_gives_the_same_table_as_the_saved_data_set(tmp_path, labelled):
    datasets.disable_progress_bars()
    labelled.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet"), read_table(saved(tmp_path / "set", labelled)))


def test_a_text_column_of_numbers_is_refused(tmp_path):
    numbers = datasets.Dataset.from_dict({"text": [1, 2]})
    assert "column 'text' holds int64" in refused(saved(tmp_path / "set", numbers))


def test_a_saved_data_set_without_rows_is_refused(tmp_path):
    assert "holds no rows" in refused(saved(tmp_path / "set", datasets.Dataset.from_dict({"text": []})))


def test_a_folder_of_splits_is_answered_with_the_folder_of_one(tmp_path, labelled):
    message = refused(saved(tmp_path / "set", datasets.DatasetDict(train=labelled, test=labelled)))
    assert "several splits (test, train)" in message
    assert str(tmp_path / "set" / "test") in message
    assert len(read_table(tmp_path / "set" / "test")) == 2


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    assert "is a folder without state.json" in refused(tmp_path)


def test_a_damaged_data_set_is_named(tmp_path, labelled):
    folder = saved(tmp_path / "set", labelled)
    next(folder.glob("*.arrow")).write_bytes(b"broken")
    assert f"{folder} cannot be read" in refused(folder)


def test_reading_prints_nothing_and_leaves_logging_and_progress_bars_as_they_were(tmp_path, capfd):
    datasets.enable_progress_bars()
    level = logging.getLogger("datasets").level
    read_table(written(tmp_path, "a.csv", "text\na\n"))
    refused(written(tmp_path, "a.parquet", b"nothing"))
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("datasets").level == level
    assert not datasets.are_progress_bars_disabled()


def test_a_file_changed_between_two_readings_is_read_anew(tmp_path):
    path = written(tmp_path, "a.csv", "text\nbefore\n")
    assert list(read_table(path)["text"]) == ["before"]
    path.write_text("text\nafter!\n")
    assert list(read_table(path)["text"]) == ["after!"]


def test_nothing_stays_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    read_table(written(tmp_path, "a.csv", "text\na\n"))
    assert not (tmp_path / "cache").exists()


def test_json_columns_of_nested_values_are_kept_as_json(tmp_path):
    table = read_table(written(tmp_path, "a.jsonl", json.dumps({"text": "a", "spans": [1, 2]})))
    assert table["spans"][0] == "[1, 2]"
