import type { Command } from 'commander';

/**
 * Arguments with each long option in full, as argparse allows it to be cut short: `--build 2` is `--build-workers 2`
 * as long as no other option begins so. What is ambiguous or unknown stays, to be refused by name. A subcommand ends
 * it: the Python builder had none.
 */
export function completeLongOptions(program: Command, argv: readonly string[]): string[] {
  const known = program.options.flatMap(({ long }) => long ?? []).concat('--help');
  const commands = new Set(program.commands.map((command) => command.name()));
  const end = argv.findIndex((argument) => argument === '--' || commands.has(argument));
  return argv.map((argument, index) => {
    if (!argument.startsWith('--') || (end !== -1 && index >= end)) return argument;
    const [name = '', ...value] = argument.split('=');
    const matches = known.filter((option) => option.startsWith(name));
    if (matches.length !== 1 || name === '--') return argument;
    return [matches[0], ...value].join('=');
  });
}
