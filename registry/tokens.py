"""Tokens, login links and browser sessions. Only hashes are stored; what they stand for has 256 random bits.

A token has one scope (each includes those before it: read, write, admin) and may be bound to projects.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed_digest
from pathlib import Path
from typing import Any, Final

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from registry import audit
from registry.db import now
from registry.errors import Forbidden, NotFound, RegistryError
from registry.ids import new_id, to_text
from registry.models import LoginCode, Project, Token, TokenProject, WebSession
from registry.types import Scope

PREFIX: Final = "cairn_"
LOGIN_CODE_LIFETIME: Final = timedelta(hours=1)
SESSION_LIFETIME: Final = timedelta(days=14)
_RANK: Final = {Scope.READ: 0, Scope.WRITE: 1, Scope.ADMIN: 2}


class Unauthenticated(RegistryError):
    code = "unauthenticated"
    title = "A token is needed"


class ScopeMissing(Forbidden):
    code = "scope-missing"
    title = "This token may not do that"


class ProjectForbidden(Forbidden):
    code = "project-forbidden"
    title = "This token is bound to other projects"


class TokenNotFound(NotFound):
    code = "token-not-found"
    title = "No such token"


class IdentityUnknown(NotFound):
    code = "identity-unknown"
    title = "This service cannot prove who it is"


@dataclass(frozen=True)
class Caller:
    """Who is asking: a token's name and scope, and the projects it is bound to (None: all)."""

    token_id: int
    name: str
    scope: Scope
    project_ids: frozenset[int] | None

    def require(self, scope: Scope) -> None:
        """Raises ScopeMissing."""
        if _RANK[self.scope] < _RANK[scope]:
            raise ScopeMissing(f"Token {self.name!r} has the scope {self.scope.value!r}; this needs {scope.value!r}.")

    def require_project(self, project_id: int) -> None:
        """Raises ProjectForbidden."""
        if self.project_ids is not None and project_id not in self.project_ids:
            raise ProjectForbidden(f"Token {self.name!r} is bound to other projects than this one.")

    def require_every_project(self) -> None:
        """Raises ProjectForbidden where the token is bound: for what concerns no single project."""
        if self.project_ids is not None:
            raise ProjectForbidden(f"Token {self.name!r} is bound to single projects; this concerns all of them.")


@dataclass(frozen=True)
class TokenRow:
    id: int
    name: str
    scope: str
    projects: tuple[str, ...] | None  # it is bound to; None: every project
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def issue_token(
    session: Session,
    name: str,
    scope: Scope,
    *,
    project_ids: Sequence[int] | None = None,
    expires_at: datetime | None = None,
    actor: str,
) -> str:
    """A new token, in the only moment that it can be read."""
    secret = PREFIX + secrets.token_urlsafe(32)
    token_id = new_id()
    session.add(
        Token(
            id=token_id,
            name=name,
            digest=_hash(secret),
            scope=scope,
            bound=project_ids is not None,
            created_at=now(),
            expires_at=expires_at,
        )
    )
    session.flush()
    for project_id in project_ids or ():
        session.add(TokenProject(token_id=token_id, project_id=project_id))
    detail: dict[str, Any] = {"name": name, "scope": scope.value}
    if project_ids is not None:
        detail["projects"] = list(
            session.scalars(select(Project.name).where(Project.id.in_(project_ids)).order_by(Project.name))
        )
    audit.record(session, actor=actor, action="token.create", subject_id=token_id, detail=detail)
    session.flush()
    return secret


def revoke_token(session: Session, token_id: int, *, actor: str) -> None:
    """End a token and every browser session that it opened. Raises TokenNotFound."""
    token = session.get(Token, token_id)
    if token is None:
        raise TokenNotFound(f"There is no token {to_text(token_id)}.")
    token.revoked_at = token.revoked_at or now()
    session.execute(delete(WebSession).where(WebSession.token_id == token_id))
    audit.record(session, actor=actor, action="token.revoke", subject_id=token_id)
    session.flush()


def has_admin(session: Session) -> bool:
    """Whether any token is left that may do everything."""
    free = (Token.scope == Scope.ADMIN, Token.bound.is_(False), Token.revoked_at.is_(None))
    alive = Token.expires_at.is_(None) | (Token.expires_at > now())
    return session.scalars(select(Token.id).where(*free, alive).limit(1)).first() is not None


def list_tokens(session: Session) -> list[TokenRow]:
    """Every token, without anything secret, the oldest first."""
    bound: dict[int, list[str]] = {}
    named = select(TokenProject.token_id, Project.name).join(Project, Project.id == TokenProject.project_id)
    for token_id, project in session.execute(named.order_by(Project.name)):
        bound.setdefault(token_id, []).append(project)
    return [
        TokenRow(
            row.id,
            row.name,
            row.scope,
            tuple(bound.get(row.id, ())) if row.bound else None,
            row.created_at,
            row.expires_at,
            row.revoked_at,
        )
        for row in session.scalars(select(Token).order_by(Token.id))
    ]


_TOKEN: Any = Token.__table__
# Built once, over the plain table: every request runs it.
_TOKENS = select(_TOKEN.c.id, _TOKEN.c.name, _TOKEN.c.scope, _TOKEN.c.bound, _TOKEN.c.expires_at, _TOKEN.c.revoked_at)
_BY_DIGEST = _TOKENS.where(_TOKEN.c.digest == bindparam("digest"))


def authenticate(session: Session, secret: str | None) -> Caller:
    """Whose token this is. Raises Unauthenticated; which part was wrong is not told."""
    token = None
    if secret:
        token = session.execute(_BY_DIGEST, {"digest": _hash(secret)}).one_or_none()
    if token is None or not _alive(token):
        told = "This token is not known here, or was revoked, or has expired. " if secret else ""
        raise Unauthenticated(
            f"{told}Send 'Authorization: Bearer <token>' with a valid token. On the machine that runs the service, "
            "the first one lies in $CAIRN_HOME/admin-token; 'cairn-server token create' makes more."
        )
    return _caller(session, token)


def ensure_admin_token(session: Session, file: Path) -> None:
    """At the first start: make the admin token and write it to a file that only its owner can read."""
    if session.scalars(select(Token.id).limit(1)).first() is not None:
        return
    secret = issue_token(session, "admin", Scope.ADMIN, actor="first start")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(secret + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(file)


def holds_a_token(session: Session, file: Path) -> bool:
    """Whether a file holds a token of this database."""
    try:
        authenticate(session, file.read_text().strip())
    except (OSError, UnicodeDecodeError, Unauthenticated):
        return False
    return True


def identity_proof(file: Path, address: str, nonce: str) -> str:
    """What only a service that can read the admin token's file can say: hex of HMAC-SHA256 over address and nonce.

    `address` is where the connection ends here ('127.0.0.1:8400'), so that whoever listens elsewhere cannot pass on
    the answer as its own. The key has 256 random bits: an answer helps nobody to guess it. Raises IdentityUnknown.
    """
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        secret = ""
    if not secret:
        raise IdentityUnknown(f"This service has no {file.name} file; call it with a token of your own.")
    return keyed_digest(secret.encode(), f"cairn-identity\n{address}\n{nonce}".encode(), "sha256").hex()


def issue_login_code(session: Session, token_secret: str) -> str:
    """A code for a login link: good once, for LOGIN_CODE_LIFETIME. Raises Unauthenticated."""
    caller = authenticate(session, token_secret)
    code = secrets.token_urlsafe(24)
    session.add(LoginCode(digest=_hash(code), token_id=caller.token_id, expires_at=now() + LOGIN_CODE_LIFETIME))
    session.flush()
    return code


def redeem_login_code(session: Session, code: str) -> str:
    """A session cookie's value for a login code, which is used up by this. Raises Unauthenticated."""
    moment = now()
    used = session.execute(
        update(LoginCode)
        .where(LoginCode.digest == _hash(code), LoginCode.used_at.is_(None), LoginCode.expires_at > moment)
        .values(used_at=moment)
        .returning(LoginCode.token_id)
    ).scalar_one_or_none()
    if used is None:
        raise Unauthenticated("This login link was used before, or is too old. Start again from a fresh link or token.")
    return _open_session(session, used)


def open_web_session(session: Session, token_secret: str) -> str:
    """A session cookie's value for a pasted token. Raises Unauthenticated."""
    return _open_session(session, authenticate(session, token_secret.strip()).token_id)


def authenticate_cookie(session: Session, cookie: str | None) -> Caller:
    """Whose browser session this is. Raises Unauthenticated."""
    if cookie:
        token = session.execute(
            _TOKENS.join(WebSession, WebSession.token_id == _TOKEN.c.id).where(
                WebSession.digest == _hash(cookie), WebSession.expires_at > now()
            )
        ).one_or_none()
        if token is not None and _alive(token):
            return _caller(session, token)
    raise Unauthenticated("You are not logged in, or the session has ended. Open a fresh login link or paste a token.")


def close_web_session(session: Session, cookie: str) -> None:
    session.execute(delete(WebSession).where(WebSession.digest == _hash(cookie)))


def csrf_token(cookie: str) -> str:
    """What every form of this browser session carries. It cannot be made without the cookie."""
    return sha256(b"csrf:" + cookie.encode()).hexdigest()


def is_csrf_token(cookie: str, given: str) -> bool:
    return compare_digest(csrf_token(cookie).encode(), given.encode())


def _open_session(session: Session, token_id: int) -> str:
    cookie = secrets.token_urlsafe(32)
    moment = now()
    session.add(
        WebSession(digest=_hash(cookie), token_id=token_id, created_at=moment, expires_at=moment + SESSION_LIFETIME)
    )
    session.flush()
    return cookie


def _alive(token: Any) -> bool:
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > now())


def _caller(session: Session, token: Any) -> Caller:
    projects = None
    if token.bound:
        query = select(TokenProject.project_id).where(TokenProject.token_id == token.id)
        projects = frozenset(session.scalars(query))
    return Caller(token.id, token.name, Scope(token.scope), projects)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
