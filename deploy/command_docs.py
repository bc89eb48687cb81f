#!/usr/bin/env python3
"""Manual pages and shell completions of the two programs, from their own --help.

    command_docs.py ROOFLINED ROOFLINED_SIM [--update]

Without --update: exits with 1 where a file in deploy/man or deploy/completions is not what the programs say, and with 77,
skipped, where a program was not built. deploy/man/*.in hold what --help does not tell.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VALUE_NAMES = {"UINT": "N", "INT": "N", "FLOAT": "NUMBER", "TEXT": "TEXT"}


def help_lines(program, command):
    arguments = [program] + ([command] if command else []) + ["--help"]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.splitlines()


def subcommands(program):
    lines = help_lines(program, None)
    start = next(i for i, line in enumerate(lines) if line.rstrip().lower() == "subcommands:")
    found = []
    for line in lines[start + 1:]:
        match = re.match(r"^  ([\w-]+)\s+(\S.*)$", line)
        if match:
            found.append((match[1], match[2].strip()))
    return found


def split_entry(head, description):
    """'--size UINT:SIZE [b, …] ...', 'Working set': the names, the value's name or None, the default, the words."""
    names, _, value = head.strip().partition(" ")
    names = re.sub(r"\{\w+\}", "", names)  # --stream,--no-stream{false}
    value = value.replace("...", "").replace("REQUIRED", "").strip()
    value = re.sub(r"\s*(Excludes|Needs): \S+", "", value).strip()  # a flag with a rule is still a flag
    if not value:
        return names, None, "", description
    default = re.search(r"^[A-Z]+=(\S+)$|^[A-Z]+ \[([^\[\]]+)\]$", value)
    choice = re.search(r"\{([^}]*)\}", value)
    kind = re.match(r"[A-Z]+", value)
    shown = "|".join(choice[1].split(",")) if choice else VALUE_NAMES.get(kind[0] if kind else "", "TEXT")
    description = re.sub(r"^\[[^\]]*\] ", "", description)  # a range that wrapped
    return names, shown, (default[1] or default[2]) if default else "", description


def entries(program, command):
    """The options and positionals of one subcommand, those of its groups too: (names, value, default, words)."""
    found = []
    indent = None
    lines = help_lines(program, command)
    for line, following in zip(lines, lines[1:] + [""]):
        heading = re.match(r"^( *)(positionals|options):", line.lower())
        if heading:
            indent = len(heading[1]) + 2
        elif line.startswith("[Option Group"):
            indent = None
        elif indent and re.match(rf"^ {{{indent}}}\S", line):
            # The words begin in column 28 of the section, or on the next line where the names need more.
            words_at = indent + 28
            head = line if following.startswith(" " * words_at) else line[:words_at]
            found.append([head, line[len(head):].strip()])
        elif indent and line.startswith(" " * 20) and found:
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
    return [split_entry(head, words) for head, words in found]


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def manual_commands(program):
    lines = []
    for command, words in subcommands(program):
        lines += [f".SS {roff(command)}", roff(words) + "."]
        for names, value, default, description in entries(program, command):
            if "--help" in names:
                continue
            shown = "\\fR, \\fB".join(roff(name) for name in names.split(","))
            lines += [".TP", f"\\fB{shown}\\fR" + (f" \\fI{roff(value)}\\fR" if value else "")]
            sentence = description[:1].upper() + description[1:]
            if not sentence.endswith("."):
                sentence += "."
            lines.append(roff(sentence) + (f" Default: {roff(default)}." if default else ""))
    return "\n".join(lines)


def bash_completion(name, program):
    cases = []
    for command, _ in subcommands(program):
        options = " ".join(n for entry in entries(program, command) for n in entry[0].split(",") if n.startswith("--"))
        cases.append(f'    {command}) words="{options}" ;;')
    commands = " ".join(command for command, _ in subcommands(program))
    function = "_" + name.replace("-", "_")
    newline = "\n"
    return f"""# bash completion of {name}. Written by deploy/command_docs.py.
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words
  case ${{COMP_WORDS[1]}} in
{newline.join(cases)}
    *) words="{commands} --help --version" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands} --help --version"; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F {function} {name}
"""


def zsh_completion(name, program):
    quote = lambda text: text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")
    commands = "\n".join(f"    '{command}:{quote(words)}'" for command, words in subcommands(program))
    cases = []
    for command, _ in subcommands(program):
        specs = []
        for names, value, _, description in entries(program, command):
            for option in names.split(","):
                if option.startswith("--"):
                    specs.append(f"'{option}[{quote(description)}]" + (f":{value.lower()}:_files'" if value else "'"))
        specs.append("'*:file:_files'")
        cases.append(f"    {command}) _arguments \\\n      " + " \\\n      ".join(specs) + " ;;")
    newline = "\n"
    return f"""#compdef {name}
# zsh completion of {name}. Written by deploy/command_docs.py.
local -a commands
if (( CURRENT == 2 )); then
  commands=(
{commands}
  )
  _describe command commands
  return
fi
local command=$words[2]
shift words
(( CURRENT-- ))
case $command in
{newline.join(cases)}
esac
"""


def fish_completion(name, program):
    quote = lambda text: text.replace("\\", "\\\\").replace("'", "\\'")
    lines = [f"# fish completion of {name}. Written by deploy/command_docs.py."]
    for command, words in subcommands(program):
        lines.append(f"complete -c {name} -n __fish_use_subcommand -f -a {command} -d '{quote(words)}'")
        for names, value, _, description in entries(program, command):
            for option in names.split(","):
                if option.startswith("--"):
                    lines.append(f"complete -c {name} -n '__fish_seen_subcommand_from {command}' -l {option[2:]}"
                                 + (" -r" if value else "") + f" -d '{quote(description)}'")
    return "\n".join(lines) + "\n"


def main():
    programs = {"rooflined": sys.argv[1], "rooflined-sim": sys.argv[2]}
    for program in programs.values():
        if not pathlib.Path(program).exists():
            print(f"skipped: {program} was not built")
            return 77
    files = {}
    for name, program in programs.items():
        page = {"rooflined": "rooflined.8", "rooflined-sim": "rooflined-sim.1"}[name]
        template = (HERE / "man" / (page + ".in")).read_text(encoding="utf-8")
        files[HERE / "man" / page] = template.replace("@COMMANDS@", manual_commands(program))
        files[HERE / "completions" / f"{name}.bash"] = bash_completion(name, program)
        files[HERE / "completions" / f"_{name}"] = zsh_completion(name, program)
        files[HERE / "completions" / f"{name}.fish"] = fish_completion(name, program)
    settings = (HERE.parent / "config" / "rooflined.toml").read_text(encoding="utf-8")
    template = (HERE / "man" / "rooflined.toml.5.in").read_text(encoding="utf-8")
    shown = "\n".join(roff(line) if not line.startswith((".", "'")) else "\\&" + roff(line) for line in settings.splitlines())
    files[HERE / "man" / "rooflined.toml.5"] = template.replace("@SETTINGS@", shown)
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--update" in sys.argv:
        for path in stale:
            path.write_text(files[path], encoding="utf-8")
        return 0
    for path in stale:
        print(f"{path.relative_to(HERE.parent)} differs from --help; run {' '.join(sys.argv)} --update")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
