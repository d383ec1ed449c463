/** Arguments of `npm run fresh-machine`. */
export interface CommandLine {
  /** As an ordinary user with sudo, not as root. */
  readonly user: boolean;
  /** Code name of the machine's Debian. Default: the release of this machine. */
  readonly suite?: string;
  readonly commands: readonly (readonly string[])[];
}

/** The commands of the README. */
const README_COMMANDS: CommandLine['commands'] = [
  ['npm', 'run', 'quickstart'],
  ['npm', 'test'],
];

/** Reads the arguments. Options end where the command begins: the command has options of its own. */
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
