"""Secrets for trackers: read from the worker's own environment or file when one is needed, and never stored.

The file named by CAIRN_TRACKER_CREDENTIALS is TOML, one table a host, readable by its owner alone:

    ["mlflow.example.org"]
    token = "…"            # or: username = "…" and password = "…"
    ["api.wandb.ai"]
    api_key = "…"

Without an entry there, MLflow's own variables count, for the host of MLFLOW_TRACKING_URI and no other; and W&B's
WANDB_API_KEY for the host of WANDB_BASE_URL, or W&B's own.
"""

import os
import stat
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from registry.errors import Invalid


class BadCredentials(Invalid):
    code = "bad-tracker-credentials"
    title = "The file of tracker credentials cannot be used"


@dataclass(frozen=True)
class Credential:
    """What a host asks for. Its text never shows a secret."""

    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    insecure_tls: bool = False  # MLFLOW_TRACKING_INSECURE_TLS: whoever sets it wants no certificate to be checked

    @property
    def authorization(self) -> str | None:
        """The value of an Authorization header; None where none is known."""
        if self.token:
            return f"Bearer {self.token}"
        if self.username is not None:
            pair = f"{self.username}:{self.password or ''}".encode()
            return f"Basic {b64encode(pair).decode('ascii')}"
        return None


NOTHING = Credential()


def find_credential(uri: str, environ: Mapping[str, str] | None = None) -> Credential:
    """The secrets for the host of a tracker's address; NOTHING where there are none. Raises BadCredentials."""
    env = os.environ if environ is None else environ
    host, port = _authority(uri)
    path = env.get("CAIRN_TRACKER_CREDENTIALS")
    if path:
        known = read_file(Path(path))
        for name in (f"{host}:{port}", host):
            if name in known:
                return known[name]
    if _authority(env.get("MLFLOW_TRACKING_URI", "")) == (host, port):
        token, user = env.get("MLFLOW_TRACKING_TOKEN"), env.get("MLFLOW_TRACKING_USERNAME")
        insecure = env.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1")
        if token or user or insecure:
            password = env.get("MLFLOW_TRACKING_PASSWORD")
            return Credential(token or None, user or None, password, insecure_tls=insecure)
    if env.get("WANDB_API_KEY") and _authority(env.get("WANDB_BASE_URL") or "https://api.wandb.ai") == (host, port):
        return Credential(api_key=env["WANDB_API_KEY"])
    return NOTHING


def _authority(uri: str) -> tuple[str, int]:
    try:
        parts = urlsplit(uri)
        return (parts.hostname or "").lower(), parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return "", -1


def read_file(path: Path) -> dict[str, Credential]:
    """The secrets of each host. Raises BadCredentials, also where others than its owner may read the file."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadCredentials(f"{path} may be read by others than its owner; chmod 600 it.")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadCredentials(f"{path} cannot be read: {type(error).__name__}.") from None
    known = {}
    for host, values in found.items():
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise BadCredentials(f"{path}: the entry of {host!r} is no table of texts.")
        unknown = set(values) - {"token", "username", "password", "api_key"}
        if unknown:
            raise BadCredentials(f"{path}: the entry of {host!r} has {sorted(unknown)[0]!r}, which is not known here.")
        known[host.lower()] = Credential(**values)
    return known
