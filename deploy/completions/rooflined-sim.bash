# bash completion of rooflined-sim. Written by deploy/command_docs.py.
_rooflined_sim() {
  local current=${COMP_WORDS[COMP_CWORD]} words
  case ${COMP_WORDS[1]} in
    serve) words="--help --model --bandwidth --efficiency --max-batch --prefill-rate --prefill-chunk --overhead --draft-tokens --acceptance --preemption --jitter --jitter-correlation --jitter-period --seed --dialect --kv-cache-type --routing --zipf --replicas --balance --stream-interval --merge --hide-drafts --cached-prompts --server-version --change --listen --pcap --duration --path --concurrency --rate --prompt-tokens --output-tokens --whole-share --abort-share --usage --no-usage" ;;
    load) words="--help --url --stream --no-stream --slow-share --warm-up --ttft --itl --seed --concurrency --rate --prompt-tokens --output-tokens --whole-share --abort-share --usage --no-usage --duration --cut --json" ;;
    slo) words="--help --url --stream --no-stream --slow-share --warm-up --ttft --itl --seed --prompt-tokens --output-tokens --whole-share --abort-share --usage --no-usage --percentile --trial --first-rate --precision --trials --rooflined --target --replicas --json" ;;
    make-model) words="--help --preset" ;;
    *) words="serve load slo make-model --help --version" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="serve load slo make-model --help --version"; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _rooflined_sim rooflined-sim
