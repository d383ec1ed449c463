import type { Candidates, CompletedCommand } from './commands.ts';

/** Script for zsh 5, a file `_nodepool-builder` in `fpath`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  const options = commands.map(({ name, options: all }) => {
    const entries = all.flatMap(({ flags, description }) =>
      flags.map((flag) => described(flag, description)),
    );
    return `    '${name}') found=(${entries.join(' ')}) ;;`;
  });
  const values = commands.flatMap(valueCases);
  const summaries = commands
    .filter(({ name }) => name !== '')
    .map(({ name, description }) => described(name, description));
  return `#compdef nodepool-builder
# Completion of nodepool-builder for zsh, written by "nodepool-builder completion zsh".

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

_nodepool-builder() {
  local command= config= expected= kind= word=
  local -i operands=0 i
  local -a found names
  for ((i = 2; i < CURRENT; i++)); do
    word=\${(Q)words[i]}
    if [[ -n $expected ]]; then
      [[ $expected == (-c|--config) ]] && config=\${word/#\\~/$HOME}
      expected=
    elif [[ $word == --*=* ]]; then
      [[ $word == --config=* ]] && config=\${\${word#*=}/#\\~/$HOME}
    elif [[ $word == -* ]]; then
      found=()
      kind=
      __nodepool_builder_candidates "$command" "$word"
      [[ -n $kind ]] && expected=$word
    elif [[ -z $command ]]; then
      command=$word
    else
      operands+=1
    fi
  done
  found=()
  kind=
  if [[ -n $expected ]]; then
    __nodepool_builder_candidates "$command" "$expected"
  elif [[ $PREFIX == --*=* ]]; then
    __nodepool_builder_candidates "$command" "\${PREFIX%%=*}"
    compset -P '*='
  elif [[ $PREFIX == -* ]]; then
    __nodepool_builder_options "$command"
    _describe -o option found
    return
  elif [[ -z $command ]]; then
    found=(${summaries.join(' ')})
    _describe command found
    return
  else
    __nodepool_builder_candidates "$command" $((operands + 1))
  fi
  case $kind in
    files) _files ;;
    directories) _files -/ ;;
    diskimages | providers)
      names=("\${(@f)$(\${(Q)words[1]} completion-names $kind \${config:+-c} \${config:+"$config"} 2>/dev/null)}")
      compadd -- \${names:#}
      ;;
    words) compadd -- $found ;;
  esac
}

if [[ $funcstack[1] == _nodepool-builder ]]; then
  _nodepool-builder "$@"
else
  compdef _nodepool-builder nodepool-builder
fi`;
}

function valueCases({ name, options, operands, isVariadic }: CompletedCommand): readonly string[] {
  const ofOptions = options.flatMap(({ flags, value }) => {
    if (value === undefined || value.isOptional) return [];
    return `    ${flags.map((flag) => `'${name} ${flag}'`).join(' | ')}) ${assignment(value.candidates)} ;;`;
  });
  const ofOperands = operands.map((candidates, index) => {
    const number = isVariadic && index === operands.length - 1 ? '*' : String(index + 1);
    return `    '${name} '${number}) ${assignment(candidates)} ;;`;
  });
  return [...ofOptions, ...ofOperands];
}

function assignment(candidates: Candidates): string {
  if (typeof candidates === 'string') return `kind=${candidates}`;
  return `kind=words; found=(${candidates.join(' ')})`;
}

/** An entry of `_describe`: the word, a colon and its description. */
function described(word: string, description: string): string {
  return `'${word}:${description.replaceAll("'", String.raw`'\''`)}'`;
}
