"""``cupola completion``: scripts that let a shell complete the commands, made from the parser of the command line."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from .output import show

HOW = {
    "bash": 'eval "$(cupola completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(cupola completion zsh)" in ~/.zshrc, behind compinit',
    "fish": "cupola completion fish > ~/.config/fish/completions/cupola.fish",
}


class Option(NamedTuple):
    """An option of a command."""

    names: tuple[str, ...]
    help: str
    takes: str  # "" for nothing, "file", "choice" or "value"
    choices: tuple[str, ...]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "completion",
        help="print a script that lets bash, zsh or fish complete cupola's commands",
        description="Print a script for a shell. To use it: " + "; ".join(HOW.values()) + ".",
    )
    command.add_argument("shell", choices=tuple(HOW), help="which shell")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Print the script."""
    commands = options.commands  # of the parser of the command line
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    table = {name: options_of(sub) for name, sub in commands.choices.items()}
    words = {name: positional_choices(sub) for name, sub in commands.choices.items()}
    show({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](table, words, helps))
    return 0


FILES = {"FILE", "PATH", "FOLDER", "SCRIPT", "PROGRAM"}


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """The options that a command takes."""
    found = []
    for action in parser._actions:
        if not action.option_strings or action.help == argparse.SUPPRESS:
            continue
        choices = tuple(map(str, action.choices or ()))
        takes = "" if action.nargs == 0 else "choice" if choices else "file" if action.metavar in FILES else "value"
        found.append(Option(tuple(action.option_strings), (action.help or "").replace("\n", " "), takes, choices))
    return found


def positional_choices(parser: argparse.ArgumentParser) -> list[str]:
    """The words that a command takes where its first argument is, if there are only some."""
    return [str(word) for action in parser._actions if not action.option_strings for word in action.choices or ()]


def bash(table: dict[str, list[Option]], words: dict[str, list[str]], helps: dict[str, str]) -> str:
    """The script for bash."""
    lines = [
        "# completion of cupola for bash",
        "_cupola() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        COMPREPLY=($(compgen -W '{' '.join([*table, '--help', '--version'])}' -- \"$word\"))",
        "        return",
        "    fi",
        '    case "$command $before" in',
    ]
    for name, options in table.items():
        for option in options:
            if option.takes == "choice":
                pattern = "|".join(f"'{name} {flag}'" for flag in option.names)
                choices = " ".join(option.choices)
                lines.append(f"        {pattern}) COMPREPLY=($(compgen -W '{choices}' -- \"$word\")); return ;;")
            elif option.takes == "value":
                lines.append(
                    f"        {'|'.join(f'{chr(39)}{name} {flag}{chr(39)}' for flag in option.names)}) return ;;"
                )
    lines += ["    esac", '    case "$command" in']
    for name, options in table.items():
        flags = " ".join(flag for option in options for flag in option.names)
        first = " ".join(words[name])
        plain = f"COMPREPLY=($(compgen -W '{first}' -- \"$word\"))" if first else 'COMPREPLY=($(compgen -f -- "$word"))'
        lines.append(f"        {name}) if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '{flags}' -- \"$word\"));")
        lines.append(f"            else {plain}; fi ;;")
    return "\n".join([*lines, "    esac", "}", "complete -o filenames -F _cupola cupola"])


def zsh(table: dict[str, list[Option]], words: dict[str, list[str]], helps: dict[str, str]) -> str:
    """The script for zsh."""
    lines = [
        "#compdef cupola",
        "_cupola() {",
        "    local -a commands",
        "    commands=(",
        *(f"        {_quote(f'{name}:{helps.get(name, str())}')}" for name in table),
        "    )",
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
        '    case "$words[2]" in',
    ]
    for name, options in table.items():
        lines.append(f"        {name}) shift words; (( CURRENT-- )); _arguments -s \\")
        for option in options:
            for flag in option.names:
                choices = f":choice:({' '.join(option.choices)})"
                value = {"": "", "file": ":file:_files", "value": ":value: ", "choice": choices}[option.takes]
                text = re_escape(option.help)
                lines.append(f"            {_quote(f'{flag}[{text}]{value}')} \\")
        rest = f"1:word:({' '.join(words[name])})" if words[name] else "*:file:_files"
        lines.append(f"            {_quote(rest)} ;;")
    return "\n".join([*lines, "    esac", "}", "compdef _cupola cupola"])


def fish(table: dict[str, list[Option]], words: dict[str, list[str]], helps: dict[str, str]) -> str:
    """The script for fish."""
    lines = ["# completion of cupola for fish"]
    # The condition is evaluated at the prompt, where variables of this script are gone.
    none = f"not __fish_seen_subcommand_from {' '.join(table)}"
    lines += [f"complete -c cupola -f -n '{none}' -a {name} -d {_quote(helps.get(name, ''))}" for name in table]
    for name, options in table.items():
        seen = f"complete -c cupola -n '__fish_seen_subcommand_from {name}'"
        for option in options:
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.names)
            value = {"": "", "file": " -r -F", "value": " -x", "choice": f" -x -a '{' '.join(option.choices)}'"}[
                option.takes
            ]
            lines.append(f"{seen} {flags}{value} -d {_quote(option.help)}")
        if words[name]:
            lines.append(f"{seen} -f -a '{' '.join(words[name])}'")
    return "\n".join(lines)


def re_escape(text: str) -> str:
    """A text that zsh may have in brackets."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
