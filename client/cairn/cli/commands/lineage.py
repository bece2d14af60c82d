"""`cairn lineage`: where a checkpoint comes from and what came from it, as a tree."""

from collections import defaultdict
from collections.abc import Iterator

import click

from cairn.cli.output import clean, json_option, print_json
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.types import Edge, Lineage

MAX_LINES = 1_000
WORDS = {
    "resumed_from": "resumed from",
    "fine_tuned_from": "fine-tuned from",
    "merged_from": "merged from",
    "resharded_from": "resharded from",
    "converted_from": "converted from",
    "quantised_from": "quantised from",
    "distilled_from": "distilled from",
}


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@json_option
def lineage(checkpoint: str, as_json: bool) -> int:
    """Show what a checkpoint came from, and what came from it, as two trees.

    Over an edge marked = the weights have the same values in another arrangement, so scores count for both ends.
    """
    with Client() as client:
        found = client.lineage(find_checkpoint_id(client, checkpoint))
    if as_json:
        print_json(found.raw)
        return 0
    click.echo(clean(f"{found.checkpoint.project}/{found.checkpoint}  {found.checkpoint.id}"))
    for title, edges, upwards in (("came from", found.ancestors, True), ("led to", found.descendants, False)):
        if edges:
            click.echo(f"{title}:")
            _print_tree(found, edges, upwards=upwards)
        else:
            click.echo("came from: nothing recorded" if upwards else "led to: nothing recorded")
    return 0


def _print_tree(found: Lineage, edges: tuple[Edge, ...], *, upwards: bool) -> None:
    names = {each.id: f"{each.project}/{each}  {each.id}" for each in found.checkpoints}
    below: dict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        below[edge.child if upwards else edge.parent].append(edge)
    for count, line in enumerate(_tree(below, found.checkpoint.id, upwards)):
        if count == MAX_LINES:
            click.echo("  ... more; --json shows all.")
            break
        prefix, edge, again = line
        other = edge.parent if upwards else edge.child
        mark = "=" if edge.lossless else "-"
        told = f"{prefix}{mark} {WORDS.get(edge.relation, edge.relation)}: {names.get(other, other)}"
        click.echo(clean(told + ("  (shown above)" if again else "")))


def _tree(below: dict[str, list[Edge]], root: str, upwards: bool) -> Iterator[tuple[str, Edge, bool]]:
    """(indent, edge, whether what follows was shown before), depth first without recursion: chains are long."""
    seen = {root}
    stack = [(edge, 1) for edge in reversed(below.get(root, []))]
    while stack:
        edge, depth = stack.pop()
        other = edge.parent if upwards else edge.child
        again = other in seen
        yield "  " * min(depth, 40), edge, again
        if not again:
            seen.add(other)
            stack += [(each, depth + 1) for each in reversed(below.get(other, []))]
