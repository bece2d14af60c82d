"""What each error code means and what to do about it, for the pages behind the types of problem documents.

An error that is not in the table is told by its docstring, else by its kind.
"""

from typing import Final

MEANINGS: Final = {
    "unauthenticated": "The request carried no token, or one that is not valid here. Send it as Authorization: Bearer.",
    "scope-missing": "The token's scope does not allow this: reading, writing and administering are three scopes.",
    "project-forbidden": "The token is bound to some projects, and this is about another.",
    "form-not-ours": "The form was filled in under another session. Load the page again and send it once more.",
    "body-too-large": "The body is over the limit that the detail names. Send it in parts: a batch can be cut.",
    "unsupported-media-type": "The Content-Type is none that this route reads; the detail names those that it does.",
    "too-many-requests": "Too many at once. Wait for Retry-After; training clients do so by themselves.",
    "database-unavailable": "The database did not answer. Nothing was changed; send the same request again.",
    "schema-behind": "The database is at another schema than this program: run cairn-server migrate.",
    "invalid-fields": "Fields are missing, unknown or of a wrong value. `errors` gives the place of each.",
    "bad-setting": "A setting of the service has a value that cannot be used; it did not start with it.",
    "malformed-json": "The body is no JSON, or holds what cannot be stored: a bare NaN, a number beyond range, a "
    "duplicate key, a lone surrogate. The detail gives the place. Send NaN as the string.",
    "invalid-filter": "The filter, the order or the list of fields has a mistake; `position` gives the character, "
    "`expected` what may stand there.",
    "invalid-cursor": "The cursor is not from this list, or the question was changed meanwhile. Begin from the start.",
    "unreadable-query": "The words mean nothing here, or more than one thing. The detail gives examples of questions.",
    "unreadable-question": "A part of a rollback's question could not be read, and a file cannot say what is left out.",
    "invalid-search": "A search takes either words or conditions, and a limit within its bounds.",
    "invalid-conditions": "A condition names no known capability, benchmark or field, or its threshold cannot be used.",
    "condition-not-for-rollback": "A rollback looks at one run or alias, where this condition says nothing.",
    "bad-rollback-question": "Say either a run or an alias, and a mode of training or production.",
    "nothing-to-watch": "The benchmark or capability to watch was never evaluated on this run.",
    "checkpoint-exists": "This step of this attempt is recorded with other content; `differing` names the fields. The "
    "same content again is no conflict. Going back in steps opens a new attempt.",
    "checkpoint-deleted": "It was deleted by a plan, and its tombstone stays. It can be undeleted within its grace.",
    "batch-refused": "A batch is kept whole or not at all; `errors` names each item that was refused.",
    "batch-in-conflict": "A batch is kept whole or not at all; some items are recorded with other content.",
    "alias-moved": "Somebody moved the alias since it was read. Read it again, and decide again.",
    "alias-target-not-committed": "An alias names what may be loaded, and a pending checkpoint may not be. Commit it.",
    "nothing-to-roll-back-to": "The alias has pointed at one checkpoint since it was made.",
    "attempt-would-restart": "The run has checkpoints, and the attempt says neither what it resumed from nor that it "
    "starts over. Say `resumed_from`, or `restart` if steps are to be repeated on purpose.",
    "bad-resume-point": "What the attempt says that it resumed from cannot be: the detail says why.",
    "unknown-attempt-state": "The state is none of those that an attempt can have.",
    "bad-project-name": "A project's name is 1 to 128 letters, digits, dots, underscores and hyphens.",
    "bad-alias-name": "An alias's name is 1 to 128 letters, digits, dots, underscores and hyphens.",
    "config-too-large": "The configuration has too many values or is nested too deep to be compared later.",
    "data-cursor-too-large": "The data cursor is over its limit. Keep the loader's state in the checkpoint itself.",
    "parent-unknown": "A parent that was named is not registered. Register it first, or in the same batch before.",
    "lineage-cycle": "With this edge a checkpoint would be its own ancestor.",
    "replica-unknown": "The scores name a copy of another checkpoint.",
    "no-import-target": "The files do not say which checkpoint they belong to: give its id, or project, run and step.",
    "nothing-imported": "No file was read; `files` gives the reason for each.",
    "bad-series": "Steps and values of a curve differ in length, or a step or a name cannot be kept.",
    "project-not-found": "No project has this name, or the token cannot see it. Names are case-sensitive.",
    "run-not-found": "No run has this id, or the token cannot see it. An id is not the name of the run.",
    "attempt-not-found": "The run has no attempt of this number.",
    "checkpoint-not-found": "No checkpoint has this id, or the token cannot see it.",
    "alias-not-found": "The project has no alias of this name.",
    "token-not-found": "No token has this id or name.",
}
