/** Arguments of `npm run fresh-machine`. */
export interface CommandLine {
  /** Run commands as an ordinary user with sudo instead of root. */
  readonly user: boolean;
  /** Code name of the machine's Debian. Default: this machine's release. */
  readonly suite?: string;
  readonly commands: readonly (readonly string[])[];
}

/** Commands from the README. */
const README_COMMANDS: CommandLine['commands'] = [
  ['npm', 'run', 'quickstart'],
  ['npm', 'test'],
];

/** Parses the arguments. Options end where the command begins, because the command has its own options. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const [first, ...others] = args;
  if (first === '--user') return { ...parseCommandLine(others), user: true };
  const [value = '', ...rest] = others;
  if (first === '--suite' && /^[a-z]+$/.test(value)) return { suite: value, ...parseCommandLine(rest) };
  if (first?.startsWith('-')) {
    throw new Error(
      `fresh-machine has no option "${first} ${value}"; usage: npm run fresh-machine -- [--user] [--suite NAME] [COMMAND...]`,
    );
  }
  return { user: false, commands: first === undefined ? README_COMMANDS : [args] };
}
