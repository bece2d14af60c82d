"""The script that made the tables: it reads published files as they are, and makes the same tables again."""

from pathlib import Path

import pytest

from demo import extract_dclm, extract_pythia
from demo.extract import extract, main, write_table
from demo.reading import TABLES

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "data"
have_source = pytest.mark.skipif(
    not (SOURCE / "pythia").is_dir(), reason="copies of the published files are not beside the repository"
)


@have_source
def test_the_committed_tables_come_out_of_the_published_files_byte_for_byte(tmp_path):
    written = extract(SOURCE, tmp_path)
    committed = sorted(path.relative_to(TABLES) for path in TABLES.rglob("*") if path.is_file())
    assert sorted(path.relative_to(tmp_path) for path in written) == committed
    for name in committed:
        assert (tmp_path / name).read_bytes() == (TABLES / name).read_bytes(), name


def test_a_folder_without_the_two_families_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no folder 'pythia'"):
        main([str(tmp_path)])


def test_a_config_with_comments_and_trailing_commas_is_read(tmp_path):
    path = tmp_path / "small.yml"
    path.write_text(
        '{\n  # parallelism\n  "model-parallel-size": 1, "pos-emb": "a#b", # why\n'
        '  "train-data-paths": ["/one/two/file_a"],\n  "fp16": {"enabled": true,\n },\n}\n'
    )
    assert extract_pythia.read_config(path) == {
        "model_parallel_size": 1,
        "pos_emb": "a#b",
        "train_data_paths": ["file_a"],
        "fp16": {"enabled": True},
    }


@pytest.mark.parametrize("accumulation", [{"gas": 2}, {"gradient_accumulation_steps": 2}])
def test_both_spellings_of_accumulation_count(accumulation):
    config = {"model_parallel_size": 2, "pipe_parallel_size": 0, "train_micro_batch_size_per_gpu": 8}
    assert extract_pythia.tokens_per_step(config | accumulation | {"seq_length": 2048}, gpus=128) == 2_097_152


def test_an_unknown_metric_is_not_dropped_in_silence():
    row = {"step": "1", "task": "a", "task_version": "0", "metric": "new", "value": "1", "stderr": "0"}
    with pytest.raises(ValueError, match="no column for the metric 'new'"):
        list(extract_pythia.score_rows([row]))


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("s3://public-bucket/runs/a/epoch_6.pt", "s3://public-bucket/runs/a/epoch_6.pt"),
        ("s3://***REMOVED***/runs/a/epoch_6.pt", "s3:///runs/a/epoch_6.pt"),
        ("s3://***REMOVED***/users/x/someone/runs/a.pt", "s3:///runs/a.pt"),
        ("s3://public-bucket/scratch/some.one/runs/a.pt", "s3:///runs/a.pt"),
    ],
)
def test_an_address_loses_its_people_and_then_its_bucket(url, kept):
    assert extract_dclm.address(url) == kept


def test_arguments_keep_flags_numbers_and_the_end_of_a_path():
    words = ["--fsdp", "--beta2", "0.95", "--z", "5e-06", "--norm", "gain", "--from", "s3://b/u/v/run/ckpt/epoch_2.pt"]
    assert extract_dclm.arguments(words) == {
        "fsdp": True,
        "beta2": 0.95,
        "z": 5e-06,
        "norm": "gain",
        "from": "run/ckpt/epoch_2.pt",
    }


def test_a_repeated_source_is_counted_and_has_no_share():
    sources = [{"name": "a", "uuid": "1"}, {"name": "b", "uuid": "2"}, {"name": "b", "uuid": "2"}]
    found = extract_dclm.listed_sources({"name": "mix", "sources": sources})
    assert found == {"a": ("1", 1, ""), "b": ("2", 2, "")}


def test_cells_that_a_row_lacks_are_empty(tmp_path):
    path = write_table(tmp_path / "t.csv", [{"a": "1"}, {"a": "2", "b": "x,y"}])
    assert path.read_bytes() == b'a,b\n1,\n2,"x,y"\n'
