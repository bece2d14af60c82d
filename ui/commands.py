"""Commands to copy from a page that is empty: each is one that exists, with this service's own address."""

import json
import shlex

from fastapi import Request

from ui.contexts import Command


def base_url(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def first_steps(request: Request, existing: str = "") -> tuple[Command, ...]:
    """How to fill an empty registry, or a project that has no run yet."""
    project = existing or "demo"
    base = base_url(request)
    curl = (
        f"curl -X POST {base}/api/v1/checkpoints:batch \\\n"
        '  -H "Authorization: Bearer $CAIRN_TOKEN" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps([{'project': project, 'run': 'first', 'step': 1000, 'loss': 2.5}]))}"
    )
    made = "" if existing else f"client.create_project({json.dumps(project)})\n"
    python = (
        "from cairn import Client\n\n"
        f'client = Client("{base}")\n'
        f'{made}run = client.create_run({json.dumps(project)}, "first")\n'
        "client.register_checkpoint(run, 1000, loss=2.5)"
    )
    loop = (
        "import cairn\n\n"
        f'run = cairn.start({json.dumps(project)}, "first", config={{"lr": 3e-4}})\n'
        "run.log(step, loss=loss)\n"
        "run.saving(step)\n"
        "run.saved(path, step=step, loss=loss)"
    )
    return (
        Command("From a shell; project and run are made where they are missing:", record_command(project, "first")),
        Command("From Python:", python),
        Command("From a training loop; it never waits for the service, and never fails because of it:", loop),
        Command("With nothing installed:", curl),
        Command("To look at published checkpoints first, stop the service and start it with:", "make demo"),
    )


def record_command(project: str, run: str) -> str:
    where = "--path /shared/checkpoint --tier shared"
    return f"cairn record --project {shlex.quote(project)} --run {shlex.quote(run)} --step 1000 --loss 2.5 {where}"


def first_checkpoint(project: str, run: str) -> Command:
    return Command("Nothing was saved yet. From a shell on the training host:", record_command(project, run))


def first_scores(checkpoint_id: str) -> Command:
    text = f"cairn evals results.json --checkpoint {checkpoint_id}"
    return Command("Not evaluated yet. Send the result file of an evaluation harness:", text)


def first_alias(request: Request) -> Command:
    text = (
        f"curl -X PUT {base_url(request)}/api/v1/aliases/PROJECT/production \\\n"
        '  -H "Authorization: Bearer $CAIRN_TOKEN" -H "Content-Type: application/json" \\\n'
        '  -d \'{"checkpoint_id": "CHECKPOINT", "reason": "first release"}\''
    )
    return Command("An alias such as production points at one committed checkpoint. From a shell:", text)
