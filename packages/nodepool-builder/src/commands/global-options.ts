import type { Command } from 'commander';
import { DELETING_COMMANDS } from './command-table.ts';

/**
 * Applies options before a command to the command, as if they stood after it. An option that the command does not
 * accept is a usage error. If it were ignored, `-c staging.yaml rebuild debian` would act on production.
 */
export function passGeneralOptions(program: Command): void {
  program.hook('preAction', (_program, command) => {
    if (command === program) return;
    for (const option of program.options) {
      const key = option.attributeName();
      if (program.getOptionValueSource(key) !== 'cli') continue;
      if (!command.options.some(({ long }) => long === option.long)) {
        command.error(`error: ${option.flags} is not an option of ${command.name()}; omit it`);
      }
      const before: unknown = program.getOptionValue(key);
      const after: unknown = command.getOptionValue(key);
      if (command.getOptionValueSource(key) === 'cli' && after !== before) {
        command.error(
          `error: ${option.flags} is given twice, as ${String(before)} and as ${String(after)}; give it once`,
        );
      }
      command.setOptionValueWithSource(key, before, 'cli');
    }
  });
}

/**
 * Completes abbreviated long options before a command, as argparse does: `--build-w 2` is `--build-workers 2` if no
 * other option begins like that. Ambiguous and unknown options are unchanged, so that the error names them. Options
 * after a command are not completed, because the Python builder had no commands.
 */
export function completeLongOptions(program: Command, argv: readonly string[]): string[] {
  const known = program.options
    .flatMap(({ long }) => long ?? [])
    .filter((long) => long !== '--log-level') // the Python builder has no such option: `--log` is `--logging-config`
    .concat('--help');
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

const HINT = /\n\(Did you mean (?:one of )?(.*)\?\)/;

/**
 * Replaces commander's hint for an unknown command. Adds commands that end in this word, and leaves out commands that
 * delete images.
 */
export function withSafeHint(program: Command, error: string): string {
  const [start, unknown] = /^error: unknown command '(.+)'/.exec(error) ?? [];
  if (start === undefined) return error;
  const near = HINT.exec(error)?.[1]?.split(', ') ?? [];
  const ending = program.commands
    .map((command) => command.name())
    .filter((name) => name.endsWith(`-${unknown}`));
  const safe = [...new Set([...near, ...ending])].filter((name) => !DELETING_COMMANDS.has(name));
  const rest = error.slice(start.length).replace(HINT, '');
  if (safe.length === 0) return start + rest;
  return `${start}\n(Did you mean ${safe.length > 1 ? 'one of ' : ''}${safe.join(', ')}?)${rest}`;
}

/**
 * Adds the command that an argument list leaves out: `serve` if it has only options. `help` for an unknown command
 * becomes that command, so that the error names the nearest one.
 */
export function withCommand(program: Command, argv: readonly string[]): readonly string[] {
  const [first, second] = argv;
  const names = program.commands.map((command) => command.name());
  if (first === 'help' && second !== undefined && !second.startsWith('-') && !names.includes(second)) {
    return argv.slice(1);
  }
  const { operands, unknown } = program.parseOptions([...argv]);
  return operands.length + unknown.length === 0 ? ['serve', ...argv] : argv;
}
