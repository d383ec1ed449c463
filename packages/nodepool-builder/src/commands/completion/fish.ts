import type { Candidates, CompletedCommand, CompletedOption } from './commands.ts';

/** Script for fish 3. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const [program, ...others] = commands;
  const withValue = (program?.options ?? []).filter(({ value }) => value !== undefined && !value.isOptional);
  return `# Completion of nodepool-builder for fish, written by "nodepool-builder completion fish".

# Prints the command of the line, or "none".
function __nodepool_builder_command
  set -l skips 0
  for word in (commandline -opc)[2..]
    if test $skips = 1
      set skips 0
      continue
    end
    switch $word
      case ${withValue.flatMap(({ flags }) => flags).join(' ')}
        set skips 1
      case '-*'
      case '*'
        echo $word
        return
    end
  end
  echo none
end

# Prints names of the configuration file of -c.
function __nodepool_builder_names
  set -l words (commandline -opc)
  set -l config
  for i in (seq 2 (count $words))
    switch $words[$i]
      case -c --config
        test $i -lt (count $words); and set config -c $words[(math $i + 1)]
      case '--config=*'
        set config -c (string replace -- --config= '' $words[$i])
    end
  end
  $words[1] completion-names $argv[1] $config 2>/dev/null
end

complete -c nodepool-builder -e
complete -c nodepool-builder -f
${commands.flatMap(linesOf).join('\n')}
${others.map(({ name, description }) => line('', `-a ${name} -d ${quoted(description)}`)).join('\n')}`;
}

function linesOf({ name, options, operands }: CompletedCommand): readonly string[] {
  const ofOptions = options.map((option) => line(name, optionWords(option)));
  const [operand] = operands;
  return name === '' || operand === undefined ? ofOptions : [...ofOptions, line(name, valueWords(operand))];
}

function line(command: string, words: string): string {
  return `complete -c nodepool-builder -n 'test (__nodepool_builder_command) = ${command || 'none'}' ${words}`;
}

function optionWords({ flags, description, value }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const needsValue = value !== undefined && !value.isOptional;
  return [...names, needsValue ? `-r ${valueWords(value.candidates)}` : '', '-d', quoted(description)]
    .filter(Boolean)
    .join(' ');
}

function valueWords(candidates: Candidates): string {
  if (candidates === 'files') return '-F';
  if (candidates === 'directories') return "-f -a '(__fish_complete_directories (commandline -ct))'";
  if (typeof candidates === 'string') return `-f -a '(__nodepool_builder_names ${candidates})'`;
  return candidates.length === 0 ? '-f' : `-f -a '${candidates.join(' ')}'`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
