"""Configs of trainings: every kind by a small file of its own, and what must never happen while one is read."""

import json
import math
import os
import time
from pathlib import Path

import pytest
import yaml
from cairn import wire
from cairn.configs import Config, Refused, read_config, read_config_path, yamlfile
from cairn.numbers import Written
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.slowness import slowness

PUBLISHED = Path(__file__).parents[4] / "shared" / "data"


def read(text: str) -> Config:
    return read_config(text.encode())


def told(config: Config) -> list[str]:
    return [str(problem) for problem in config.problems]


NEOX = """{
  # parallelism settings
  "pipe-parallel-size": 1,
  "attention-config": [[["flash"], 6]],
  "optimizer": {
    "type": "Adam",
    "params": { "lr": 0.0010, "betas": [0.9, 0.95], "eps": 1.0e-8, },
  },
  "no-weight-tying": true,   # a trailing comma follows
  "vocab-file": null,
}
"""
YAML = """
run_name: OLMo-1B
save_folder: ${path.choose:${oc.env:SCRATCH,no}/ckpt,/results}
seed: 6198
model: &model
  d_model: 2048
  dropout: 0.0
  bias: no
optimizer: {name: adamw, learning_rate: 4e-4, betas: [0.9, 0.95], clip: .inf}
copy: *model
more:
  <<: *model
  d_model: 4096
started: 2024-11-01
version: "002837"
empty: {}
"""
TOML = """
title = "torchtitan"
[optimizer]
lr = 8e-4
fused = true
betas = [0.9, 0.95]
steps = 1_000
start = 2026-11-01T10:00:00Z
[[stages]]
name = "a"
"""
MEGATRON = """using world size: 8, data-parallel size: 2
------------------------ arguments ------------------------
  adam_beta1 ...................................... 0.9
  adam_eps ........................................ 1e-08
  apply_query_key_layer_scaling ................... False
  data_path ....................................... ['0.5', '/data/a', 'b c']
  hidden_size ..................................... 4096
  load ............................................ None
  params_dtype .................................... torch.bfloat16
  recompute_modules ............................... (1, 2)
  tokenizer_model .................................
-------------------- end of arguments ---------------------
"""
NAMESPACE = (
    "args = Namespace(lr=0.0010, betas=[0.9, 0.95], name='a, b=c', dtype=torch.float16, backend=<Attn.auto: 5>, "
    'nested=Namespace(a=1, b=None), text="it\'s", minus=-inf, device=device(type="cuda", index=0), big={1: (2, 3)})'
)
HF = '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rope": {"a": 1e6}, "transformers_version": "4"}'
AXOLOTL = (
    "base_model: org/m\nadapter: qlora\nlearning_rate: 2e-4\nlora_model_dir:\ndatasets:\n  - path: a\n    type: b\n"
)


def test_gpt_neox_with_comments_and_trailing_commas() -> None:
    config = read(NEOX)
    assert (config.format, config.problems) == ("gpt-neox", ())
    assert config.flat == {
        "pipe-parallel-size": 1,
        "attention-config.0.0.0": "flash",
        "attention-config.0.1": 6,
        "optimizer.type": "Adam",
        "optimizer.params.lr": 0.001,
        "optimizer.params.betas.0": 0.9,
        "optimizer.params.betas.1": 0.95,
        "optimizer.params.eps": 1e-8,
        "no-weight-tying": True,
        "vocab-file": None,
    }


def test_yaml_keeps_types_and_unfolds_anchors() -> None:
    config = read(YAML)
    flat = config.flat
    assert (config.format, config.problems) == ("yaml", ())
    assert flat["save_folder"] == "${path.choose:${oc.env:SCRATCH,no}/ckpt,/results}"
    assert (flat["seed"], flat["model.bias"], flat["version"]) == (6198, False, "002837")
    assert isinstance(flat["optimizer.learning_rate"], float), "a number without a dot is text only in YAML 1.1"
    assert (flat["optimizer.learning_rate"], flat["optimizer.clip"]) == (4e-4, math.inf)
    assert (flat["copy.d_model"], flat["more.d_model"], flat["more.dropout"]) == (2048, 4096, 0.0)
    assert (flat["started"], flat["empty"]) == ("2024-11-01", {})


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (
            "lr: 4.0e-4\neps: 1.50\nn: 0x10\nm: 1_000\nodd: 1.\nplus: +1.5",
            '{"lr":4.0e-4,"eps":1.50,"n":16,"m":1000,"odd":1.0,"plus":1.5}',
        ),
        ('{"lr": 4.0e-4, "eps": 1.50, "clip": NaN}', '{"lr":4.0e-4,"eps":1.50,"clip":"NaN"}'),
        ("lr = 4.0e-4\neps = 1.50\nclip = nan", '{"lr":4.0e-4,"eps":1.50,"clip":"NaN"}'),
        ("Namespace(lr=4.0e-4, eps=1.50, clip=inf)", '{"lr":4.0e-4,"eps":1.50,"clip":"Infinity"}'),
    ],
)
def test_numbers_travel_as_they_are_written(text: str, sent: str) -> None:
    assert wire.encode(read(text).values).decode() == sent


def test_toml() -> None:
    config = read(TOML)
    assert (config.format, config.problems) == ("toml", ())
    assert config.flat == {
        "title": "torchtitan",
        "optimizer.lr": 8e-4,
        "optimizer.fused": True,
        "optimizer.betas.0": 0.9,
        "optimizer.betas.1": 0.95,
        "optimizer.steps": 1000,
        "optimizer.start": "2026-11-01T10:00:00+00:00",
        "stages.0.name": "a",
    }


def test_the_arguments_that_megatron_prints() -> None:
    expected = {
        "adam_beta1": 0.9,
        "adam_eps": 1e-8,
        "apply_query_key_layer_scaling": False,
        "data_path": ["0.5", "/data/a", "b c"],
        "hidden_size": 4096,
        "load": None,
        "params_dtype": "torch.bfloat16",
        "recompute_modules": [1, 2],
        "tokenizer_model": "",
    }
    config = read(MEGATRON)
    assert (config.format, config.values, config.problems) == ("megatron-arguments", expected, ())
    logged = "\n".join(f"[default{rank}]:{line}" for rank in (0, 1) for line in MEGATRON.splitlines())
    assert read(logged).values == expected, "every rank printed the same"
    other = read(MEGATRON + MEGATRON.replace("4096", "8192"))
    assert other.values["hidden_size"] == 8192
    assert told(other) == ["hidden_size: stands twice with different values; the last one was read, 8192"]


def test_the_text_of_a_namespace() -> None:
    config = read(NAMESPACE)
    assert config.format == "namespace"
    assert config.values == {
        "lr": 0.001,
        "betas": [0.9, 0.95],
        "name": "a, b=c",
        "dtype": "torch.float16",
        "backend": "<Attn.auto: 5>",
        "nested": {"a": 1, "b": None},
        "text": "it's",
        "minus": -math.inf,
        "device": 'device(type="cuda", index=0)',
        "big": {"1": [2, 3]},
    }
    with pytest.raises(Refused, match="cut short"):
        read(NAMESPACE[:-1])
    assert told(read("Namespace(a=1, b)\nmore text")) == [
        "text behind the Namespace(...) was not read",
        "'b' is no name=value",
    ]


@pytest.mark.parametrize(
    ("text", "format"), [(HF, "hf-config"), (AXOLOTL, "axolotl"), ('{"a": 1}', "json"), ("a: 1", "yaml")]
)
def test_whose_config_it_is_shows_in_its_keys(text: str, format: str) -> None:
    assert read(text).format == format


def test_axolotl() -> None:
    assert read(AXOLOTL).flat == {
        "base_model": "org/m",
        "adapter": "qlora",
        "learning_rate": 2e-4,
        "lora_model_dir": None,
        "datasets.0.path": "a",
        "datasets.0.type": "b",
    }


@pytest.mark.parametrize(
    "text",
    [
        "a: {lr: 1.0, lr: 2.0}\nb: 1\nb: 1",
        '{"a": {"lr": 1.0, "lr": 2.0}, "b": 1, "b": 1}',
        "Namespace(a=Namespace(lr=1.0, lr=2.0), b=1, b=1)",
    ],
)
def test_a_key_that_stands_twice_is_reported_where_its_values_differ(text: str) -> None:
    config = read(text)
    assert told(config) == ["a.lr: stands twice with different values; the last one was read, 2.0"]
    assert config.problems[0].is_duplicate
    assert config.flat == {"a.lr": 2.0, "b": 1}
    assert read("base: &b {lr: 1}\nrun: {<<: *b, lr: 2}").problems == (), "a merged key may be set anew"


def test_what_cannot_be_read_is_reported_and_the_rest_stays() -> None:
    config = read(
        "ok: 1\nhuge: 1.0e999\nimage: !!binary aGk=\ntime: 1:30.5\nown: !Secret x\nlist: !mine [1]\n? [a, b]\n: 5\n"
        "tuple: !!python/tuple [1, 2]\n---\nsecond: 1"
    )
    assert config.values == {
        **dict.fromkeys((key for key in config.values if key.startswith("[a")), 5),
        "ok": 1,
        "huge": "1.0e999",
        "time": "1:30.5",
        "own": "x",
        "list": [1],
        "tuple": [1, 2],
    }
    said = " | ".join(told(config))
    for part in (
        "the file holds 2 documents; the first one was read",
        "huge: '1.0e999' was read as text",
        "image: binary data; it was left out",
        "own: the tag !Secret is not interpreted",
        "list: the tag !mine is not interpreted",
        "tuple: the tag !!python/tuple is not interpreted",
        "a key is itself a list or an object",
    ):
        assert part in said


def test_lines_indented_by_tabs_are_read_and_noted() -> None:
    config = read("a:\n\tb: 1\n\tc:\n\t\td: 2")
    assert config.flat == {"a.b": 1, "a.c.d": 2}
    assert "indented by tabs" in told(config)[0]


# What must never happen


@pytest.mark.parametrize(
    "tag",
    [
        '!!python/object/apply:os.system ["touch {mark}"]',
        "!!python/object/new:os.system [touch {mark}]",
        "!!python/name:os.system",
        "!!python/module:os",
        "!<tag:yaml.org,2002:python/object/apply:os.system> [touch {mark}]",
    ],
)
def test_nothing_that_a_config_says_is_run(tmp_path: Path, tag: str) -> None:
    mark = tmp_path / "ran"
    config = read(f"a: 1\nb: {tag.format(mark=mark)}\n")
    assert config.values == {"a": 1}
    assert "would make an object of a program; it was left out" in told(config)[0]
    called = read(f"Namespace(a=__import__('os').system('touch {mark}'), b=[open('/etc/passwd')])")
    assert called.values["a"].startswith("__import__")
    assert called.values["b"] == "[open('/etc/passwd')]"
    assert not mark.exists()


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("loader", sorted({"CSafeLoader", "SafeLoader"} & vars(yaml).keys()))
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (laughs(9), "more than 100,000 values, its aliases unfolded"),
        ("a: &a [*a]", "contains itself|alias"),
        ("a: &a {b: *a}", "contains itself|alias"),
        ("a: " + "[" * 5_000 + "]" * 5_000, "nest"),
        ("a: " + "{b: " * 5_000 + "}" * 5_000, "nest"),
        ('{"a": ' * 70 + "1" + "}" * 70, "nested more than 64 deep"),
        ("[" * 100_000, "nested"),
        ("Namespace(a=" * 100 + ")" * 100, "nested more than 64 deep"),
        ("[" + "1, " * 110_000 + "]", "more than 100,000 values"),
        ("a: 1" + " " * 9_000_000, "more than 8,388,608 bytes"),
    ],
)
def test_what_unfolds_nests_or_swells_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, loader: str, text: str, reason: str
) -> None:
    """With libyaml and without it."""
    monkeypatch.setattr(yamlfile, "_Loader", getattr(yaml, loader))
    started = time.process_time()
    with pytest.raises(Refused, match=reason):
        read(text)
    assert time.process_time() - started < 20 * slowness()


def test_a_value_that_nests_too_deep_for_python_stays_text() -> None:
    assert read("Namespace(a=" + "(" * 3_000 + ")" * 3_000 + ")").values["a"].startswith("(((")
    assert read(MEGATRON.replace("4096", "[" * 3_000 + "]" * 3_000)).values["hidden_size"].startswith("[[[")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds nothing"),
        (b"# only a comment\n", "holds nothing"),
        (b"just words", "holds text"),
        (b"- a\n- b", "holds a list"),
        (b"[1]", "holds a list"),
        (b"5", "holds a number"),
        (b"{", "no YAML"),
        (b"a: b: c", "no YAML: mapping values are not allowed in this context at line 1"),
        (b"a: *nowhere", "no YAML"),
        (b"\xff\xfe", "no UTF-8"),
        (b"a: \0", "NUL character"),
        (b"\x80\x04\x95", "no UTF-8"),
    ],
)
def test_what_is_no_config_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_config(content)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(Refused, match="holds nothing"):
        read_config_path(tmp_path / "config.yaml")


PIECES = st.sampled_from(
    (
        *("a: ", "- ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "? ", "!t ", "!!float ", "!!int ", "!!bool ", "1e5"),
        *("\n", " ", "'", "a = 1", "[t]", "  x ..... 1\n", "Namespace(", ")", "=", "0x", "1:30", ".nan", "2024-01-01"),
        *("---\n", "#", ", ", '"'),
    )
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_as_what_can_be_sent_or_refused(text: str) -> None:
    try:
        config = read_config(text.encode("utf-8", "replace"))
    except Refused:
        return
    assert isinstance(json.loads(wire.encode(config.values)), dict)
    assert all(isinstance(path, str) for path in config.flat)


# Published configs, where they are at hand


def published() -> list[Path]:
    patterns = ("pythia/configs/*.yml", "olmo/*.yaml", "ckpt_layout/axolotl/*", "ckpt_layout/**/*config.json")
    return sorted(path for pattern in patterns for path in PUBLISHED.glob(pattern))


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published configs are not on this machine")
def test_every_published_config_is_read_without_a_doubt() -> None:
    formats: dict[str, int] = {}
    for path in published():
        config = read_config_path(path)
        assert config.problems == (), path
        assert len(config.flat) > 25
        wire.encode(config.values)
        formats[config.format] = formats.get(config.format, 0) + 1
    assert formats == {"axolotl": 4, "gpt-neox": 11, "hf-config": 2, "yaml": 3}


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published configs are not on this machine")
def test_two_seeds_of_one_training_differ_in_what_their_files_differ() -> None:
    one, other = (read_config_path(PUBLISHED / f"olmo/OLMo2-7B-stage2-seed{seed}.yaml").flat for seed in (42, 42069))
    changed = {path for path in one | other if one.get(path) != other.get(path)}
    assert {"seed", "run_name"} <= changed
    assert not {path for path in changed if path.startswith("model.")}
    neox = read_config_path(PUBLISHED / "pythia/configs/pythia-70m.yml").flat
    assert isinstance(neox["optimizer.params.lr"], Written)
    assert (neox["optimizer.params.lr"], neox["num-layers"], neox["no-weight-tying"]) == (0.001, 6, True)
