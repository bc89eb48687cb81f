# bash completion of rooflined. Written by deploy/command_docs.py.
_rooflined() {
  local current=${COMP_WORDS[COMP_CWORD]} words
  case ${COMP_WORDS[1]} in
    run) words="--help --config --listen --trace --log-format" ;;
    replay) words="--help --port --model --ceiling --kv-cache-type --replicas --json" ;;
    membw) words="--help --threads --size --reps --adopt --state --json" ;;
    inspect) words="--help --batch --context --kv-cache-type --bandwidth --json" ;;
    mark-deploy) words="--help --target --version --accept --config --socket" ;;
    check-config) words="--help --json" ;;
    doctor) words="--help --config --user --json" ;;
    bench) words="--help --llama-bench --threads --n-prompt --n-gen --reps --depth --gpu-layers --peak-bandwidth --skip-membw --bytes --timeout --state --output --markdown --json" ;;
    report) words="--help --reanalyze --peak-bandwidth --plot --markdown --json" ;;
    fit) words="--help --from-metrics --peak-bandwidth --plot --markdown --json" ;;
    advise) words="--help --core --scale --measure --llama-bench --threads --n-prompt --n-gen --reps --depth --gpu-layers --peak-bandwidth --skip-membw --bytes --timeout --state --markdown --json" ;;
    *) words="run replay membw inspect mark-deploy check-config doctor bench report fit advise --help --version" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="run replay membw inspect mark-deploy check-config doctor bench report fit advise --help --version"; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _rooflined rooflined
