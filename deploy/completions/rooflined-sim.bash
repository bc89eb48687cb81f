# bash completion of rooflined-sim. Written by deploy/command_docs.py.
_rooflined_sim() {
  local current=${COMP_WORDS[COMP_CWORD]} words
  case ${COMP_WORDS[1]} in
    serve) words="--help --listen --model --bandwidth --efficiency --max-batch --prefill-rate --overhead --draft-tokens --acceptance --dialect --kv-cache-type --routing --seed" ;;
    load) words="--help --url --duration --cut --prompt-tokens --output-tokens --stream --no-stream{false} --usage --no-usage{false} --seed --json" ;;
    make-model) words="--help --preset" ;;
    *) words="serve load make-model --help --version" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="serve load make-model --help --version"; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _rooflined_sim rooflined-sim
