"""`recall models`: download embedding models and rerankers, or export them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from recall_core.models import Json

from .options import json_option
from .output import is_styled, open_console, tell, write, write_json
from .progress import show_progress
from .stopping import stopping

if TYPE_CHECKING:
    from recall_core.embedding.presets import Preset
    from recall_core.embedding.spec import Pooling

name_argument = click.argument("name")


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """Download embedding models and rerankers, or export them.

    A downloaded model is used by its name: --model NAME, --rerank NAME. Only pull touches the network.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@models.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List the models that can be pulled, and tell which are there."""
    from recall_core.embedding.presets import PRESETS

    if as_json:
        write_json({"models": [preset_shape(preset) for preset in PRESETS]})
    else:
        print_presets(PRESETS)


@models.command()
@name_argument
@click.option(
    "--endpoint",
    metavar="URL",
    envvar="HF_ENDPOINT",
    show_envvar=True,
    help="A mirror to download from, in place of huggingface.co.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@json_option
def pull(name: str, endpoint: str | None, quiet: bool, as_json: bool) -> None:
    """Download the model NAME, or check and repair the one that is there; print its folder.

    An interrupted download is gone on with by the same command. Every file is checked by its SHA-256.
    """
    from recall_core.embedding.presets import find_preset
    from recall_core.embedding.pulling import pull as pull_preset

    preset = find_preset(name)
    goes_on = f"recall models pull {preset.name} goes on where it stopped"
    with stopping(lambda: goes_on), show_progress(preset.size, preset.name, quiet=quiet) as progress:
        folder = pull_preset(preset, endpoint=endpoint, advance=progress.advance, tell=progress.tell)
    if as_json:
        write_json(preset_shape(preset))
    else:
        write(str(folder))


@models.command()
@name_argument
def path(name: str) -> None:
    """Print the folder of the model NAME. The exit code is 3 if it was not pulled."""
    from recall_core.embedding import model_path

    write(str(model_path(name)))


@models.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--precision",
    type=click.Choice(["int8", "fp32"]),
    default="int8",
    show_default=True,
    help="Of the weights: int8 is a quarter of the size and faster.",
)
@click.option("--pooling", type=click.Choice(["mean", "cls"]), help="How tokens become a vector.")
@click.option("--query-prefix", metavar="TEXT", help="Put before each query.")
@click.option("--passage-prefix", metavar="TEXT", help="Put before each stored text.")
@click.option("--max-length", metavar="N", type=int, help="Tokens that the model takes.")
@json_option
def export(
    checkpoint: Path,
    folder: Path,
    precision: str,
    pooling: str | None,
    query_prefix: str | None,
    passage_prefix: str | None,
    max_length: int | None,
    as_json: bool,
) -> None:
    """Export the model of the folder CHECKPOINT as ONNX into FOLDER, which --model then takes.

    CHECKPOINT has what the model hubs have: config.json, tokenizer, safetensors or PyTorch weights. What the options
    leave open is read from its files. Needs: pip install "dualrecall[export]"
    """
    from recall_core.embedding.export import export as export_model
    from recall_core.embedding.installed import show_size
    from recall_core.embedding.spec import Overrides

    overrides = Overrides(
        pooling=cast("Pooling | None", pooling),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        max_length=max_length,
    )
    done = export_model(checkpoint, folder, overrides, quantized=precision == "int8")
    if as_json:
        shape: dict[str, Json] = {
            "path": str(done.folder),
            "kind": done.kind,
            "size": done.size,
            "dimensions": done.dimensions,
            "likeness": done.likeness,
        }
        write_json(shape)
        return
    write(str(done.folder))
    facts = [done.kind, show_size(done.size)]
    if done.likeness is not None:
        facts += [f"{done.dimensions} dimensions", f"cosine to the original at least {done.likeness:.3f}"]
    tell(", ".join(facts))


def preset_shape(preset: Preset) -> dict[str, Json]:
    """Return a preset as --json prints it; `path` is null where the model was not pulled."""
    from recall_core.embedding.installed import is_complete, preset_folder

    return {
        "name": preset.name,
        "kind": preset.kind,
        "languages": preset.languages,
        "dimensions": preset.dimensions,
        "max_length": preset.max_length,
        "pooling": preset.pooling,
        "query_prefix": preset.query_prefix,
        "passage_prefix": preset.passage_prefix,
        "licence": preset.licence,
        "size": preset.size,
        "repository": preset.repository,
        "commit": preset.commit,
        "path": str(preset_folder(preset)) if is_complete(preset) else None,
    }


def print_presets(presets: Sequence[Preset]) -> None:
    """Print a line for each preset."""
    rows = [_row(preset) for preset in presets]
    head = ("name", "kind", "languages", "dims", "tokens", "size", "licence", "here")
    if is_styled():
        from rich.table import Table

        table = Table(*head, box=None, pad_edge=False, header_style="dim")
        for row in rows:
            table.add_row(*row)
        open_console().print(table)
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(preset: Preset) -> tuple[str, ...]:
    from recall_core.embedding.installed import is_complete, preset_folder, show_size

    state = "pulled" if is_complete(preset) else "incomplete" if preset_folder(preset).exists() else "-"
    return (
        preset.name,
        preset.kind,
        preset.languages,
        "-" if preset.dimensions is None else str(preset.dimensions),
        str(preset.max_length),
        show_size(preset.size),
        preset.licence,
        state,
    )
