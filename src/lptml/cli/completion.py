"""``lptml completion``: the script that teaches a shell to complete lptml's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from lptml.cli.options import common

SHELLS = ("bash", "zsh", "fish")
INSTALL = {
    "bash": "lptml completion bash > ~/.local/share/bash-completion/completions/lptml",
    "zsh": "lptml completion zsh > ~/.zfunc/_lptml   (with fpath+=~/.zfunc before compinit)",
    "fish": "lptml completion fish > ~/.config/fish/completions/lptml.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@common
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool, quiet: bool) -> None:
    """Print the completion script of a SHELL.

    \b
    Install it once:
      lptml completion bash > ~/.local/share/bash-completion/completions/lptml
      lptml completion zsh > ~/.zfunc/_lptml   (with fpath+=~/.zfunc before compinit)
      lptml completion fish > ~/.config/fish/completions/lptml.fish
    """
    from lptml.cli.output import emit

    maker = get_completion_class(shell)
    assert maker is not None
    source = maker(ctx.find_root().command, {}, "lptml", "_LPTML_COMPLETE").source()
    emit({"shell": shell, "script": source, "install": INSTALL[shell]}, as_json=as_json, text=lambda: source)
