"""Secrets are masked before they leave the process, and the words of tokenizers and attention are not."""

import pytest
from cairn.capture.secrets import MASK, is_secret_name, mask, mask_command, mask_log, mask_text

SECRET = (
    *("token", "key", "password", "secret", "credential", "credentials", "auth", "api_key", "apiKey", "API-KEY"),
    *("HF_TOKEN", "hf_token", "wandb_api_key", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"),
    *("OPENAI_API_KEY", "OPENAI_API_KEY_2", "github_token", "PGPASSWORD", "db_password", "client_secret", "passphrase"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "Authorization", "oauth", "private_key", "ssh_key", "CAIRN_TOKEN", "pwd"),
    *("authToken", "accessToken", "hub_token", "push_to_hub_token", "HUGGING_FACE_HUB_TOKEN", "mysql_passwd"),
)
HARMLESS = (
    *("tokenizer", "tokens_seen", "key_padding", "num_key_value_heads", "max_tokens", "tokens", "tokenizer_path"),
    *("pad_token", "eos_token_id", "bos_token", "mask_token", "token_type_ids", "cost_per_token", "qk_norm", "keys"),
    *("key_padding_mask", "num_query_groups", "author", "authors", "keyboard", "monkey", "sort_key", "attempt_key"),
    *("max_new_tokens", "vocab_size", "kv_channels", "key_value_proj_dim", "text_key", "authority", "compass", "path"),
    *("hidden_size", "attention_mask", "token_dropout", "num_tokens_per_batch", "image_token", "rng_key", "bypass"),
)


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_masked(name: str) -> None:
    assert is_secret_name(name)
    assert mask({name: "value-of-it"}) == {name: MASK}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_word_of_models_and_data_is_not(name: str) -> None:
    assert not is_secret_name(name)
    assert mask({name: "value-of-it", "n": 1}) == {name: "value-of-it", "n": 1}


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrstuvwx",
        "sk-proj-abc_defghijklmnopqrstuvwx",
        "hf_abcdefghijklmnopqrstuvwxyz",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "cairn_" + "a" * 43,
    ],
)
def test_what_looks_like_a_secret_is_masked_under_any_name(text: str) -> None:
    assert mask({"note": f"x {text} y"}) == {"note": f"x {MASK} y"}


def test_addresses_lose_their_password_and_signature_only() -> None:
    assert mask_text("https://ana:hunter2@git.example.org/a.git") == f"https://{MASK}@git.example.org/a.git"
    assert mask_text("https://b.example/x?X-Amz-Signature=abc&part=2") == (
        f"https://b.example/x?X-Amz-Signature={MASK}&part=2"
    )
    assert mask_text("s3://bucket/run@2/step") == "s3://bucket/run@2/step"


@pytest.mark.parametrize("password", ["hunter2", "p@ss", "a/b", "x:y"])
def test_a_password_in_an_address_is_masked_whatever_it_holds(password: str) -> None:
    assert mask_text(f"see postgres://ana:{password}@db/cairn now") == f"see postgres://{MASK}@db/cairn now"


@pytest.mark.parametrize("address", ["http://host:8400/run@2", "s3://bucket/a@b", "git@github.com:org/repo"])
def test_an_at_sign_in_a_path_is_no_password(address: str) -> None:
    assert mask_text(address) == address


def test_a_command_line_keeps_everything_but_its_secrets() -> None:
    given = ["train.py", "--hf_token", "abc", "--api-key=xyz", "HF_TOKEN=q", "--tokenizer", "gpt2", "--max_tokens=5"]
    assert mask_command(given) == [
        "train.py",
        "--hf_token",
        MASK,
        f"--api-key={MASK}",
        f"HF_TOKEN={MASK}",
        "--tokenizer",
        "gpt2",
        "--max_tokens=5",
    ]


def test_everything_below_a_secret_name_is_masked() -> None:
    assert mask({"credentials": {"user": "ana", "nested": ["x", 12345]}, "lr": 0.1}) == {
        "credentials": {"user": MASK, "nested": [MASK, MASK]},
        "lr": 0.1,
    }
    assert mask({"use_auth": True, "token": None, "password": ""}) == {"use_auth": True, "token": None, "password": ""}


def test_lines_of_a_log_lose_assigned_secrets() -> None:
    line = "export HF_TOKEN=abcdefgh; password: hunter22 step=100 tokens=4096 key_padding=True"
    assert mask_log(line) == f"export HF_TOKEN={MASK}; password: {MASK} step=100 tokens=4096 key_padding=True"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("{'lr': 1, 'hf_token': 'abc'}", "{'lr': 1, 'hf_token': '***'}"),
        ('{"db": {"password": "it\'s me"}}', '{"db": {"password": "***"}}'),
        (r"{\"password\": \"abc\"}", r"{\"password\": \"***\"}"),
        ("os.environ['HF_TOKEN'] = 'abc'", "os.environ['HF_TOKEN'] = '***'"),
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("headers: Authorization: token abc", "headers: Authorization: token ***"),
        ("args: token=abc lr=1", "args: token=*** lr=1"),
        ("+ train.py --api-key abc --lr 1", "+ train.py --api-key *** --lr 1"),
        ("Namespace(hf_token=None, password='a b')", "Namespace(hf_token=None, password='***')"),
        ("step: 5 token: 12 loss: 2.31", "step: 5 token: 12 loss: 2.31"),
    ],
)
def test_a_secret_is_masked_in_the_ways_that_logs_print_it(line: str, masked: str) -> None:
    assert mask_log(line) == masked


def test_a_command_within_a_command_loses_its_secrets_too() -> None:
    inner = "export A=1; WANDB_API_KEY=abc train.py --password def --lr 1"
    expected = f"export A=1; WANDB_API_KEY={MASK} train.py --password {MASK} --lr 1"
    assert mask_command(["bash", "-c", inner]) == ["bash", "-c", expected]
    assert mask_command(["train.py", '{"password": "abc"}']) == ["train.py", f'{{"password": "{MASK}"}}']
