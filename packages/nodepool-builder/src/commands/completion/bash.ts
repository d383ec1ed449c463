import type { Candidates, CompletedCommand, CompletedOption } from './commands.ts';

/** Script for bash 4.4 or later. It needs no package bash-completion. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const options = commands.map(({ name, options: all }) => {
    return `    '${name}') echo '${all.flatMap(({ flags }) => flags).join(' ')}' ;;`;
  });
  const values = commands.flatMap(valueCases);
  return `# Completion of nodepool-builder for bash, written by "nodepool-builder completion bash".

# Options of a command; '' stands for none.
__nodepool_builder_options() {
  case $1 in
${options.join('\n')}
  esac
}

# What follows in "COMMAND OPTION", or as the operand of "COMMAND NUMBER"; nothing for an option without a value.
__nodepool_builder_candidates() {
  case "$1 $2" in
${values.join('\n')}
  esac
}

_nodepool_builder() {
  local current=\${COMP_WORDS[COMP_CWORD]} command='' config='' expected='' candidates='' word='' i
  local -i operands=0
  COMPREPLY=()
  # readline splits words at "=" and ":", too.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      continue
    elif [[ $word == ':' ]]; then
      i=i+1
    elif [[ -n $expected ]]; then
      [[ $expected == -c || $expected == --config ]] && config=\${word/#\\~/$HOME}
      expected=''
    elif [[ $word == -* ]]; then
      [[ -n $(__nodepool_builder_candidates "$command" "$word") ]] && expected=$word
    elif [[ -z $command ]]; then
      command=$word
    else
      operands+=1
    fi
  done
  [[ $current == '=' ]] && current=''
  if [[ -n $expected ]]; then
    candidates=$(__nodepool_builder_candidates "$command" "$expected")
  elif [[ $current == -* ]]; then
    candidates="words $(__nodepool_builder_options "$command")"
  else
    candidates=$(__nodepool_builder_candidates "$command" $((operands + 1)))
  fi
  case $candidates in
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    directories)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    diskimages | providers)
      while IFS= read -r word; do
        [[ $word == "$current"* ]] && COMPREPLY+=("$(printf %q "$word")")
      done < <("\${COMP_WORDS[0]}" completion-names "$candidates" \${config:+-c "$config"} 2>/dev/null)
      ;;
    words*)
      mapfile -t COMPREPLY < <(compgen -W "\${candidates#words}" -- "$current")
      ;;
  esac
}

complete -F _nodepool_builder nodepool-builder`;
}

function valueCases({ name, options, operands, isVariadic }: CompletedCommand): readonly string[] {
  const ofOptions = options.flatMap(({ flags, value }: CompletedOption) => {
    if (value === undefined || value.isOptional) return [];
    return `    ${flags.map((flag) => `'${name} ${flag}'`).join(' | ')}) echo '${candidateText(value.candidates)}' ;;`;
  });
  const ofOperands = operands.map((candidates, index) => {
    const isLast = index === operands.length - 1;
    const number = isVariadic && isLast ? '*' : String(index + 1);
    return `    '${name} '${number}) echo '${candidateText(candidates)}' ;;`;
  });
  return [...ofOptions, ...ofOperands];
}

function candidateText(candidates: Candidates): string {
  return typeof candidates === 'string' ? candidates : `words ${candidates.join(' ')}`;
}
