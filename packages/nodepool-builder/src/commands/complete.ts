import { homedir } from 'node:os';
import type { Command, Option } from 'commander';
import { readYaml } from '../yaml/yaml-document.ts';
import { DEFAULT_CONFIG_FILE } from './options.ts';

/**
 * `complete -- WORD...`: prints the candidates for the last word of a command line, for the scripts of `completion`.
 */
export function register(program: Command): void {
  program
    .command('complete', { hidden: true })
    .description('Prints the candidates for the last word: a line each, with a tab before its description.')
    .argument('[word...]')
    .action(async (words: readonly string[]) => {
      for (const line of await candidates(program, words)) console.log(line);
    });
}

/**
 * Lists the candidates for the last word. `:files` and `:directories` stand for candidates that the shell finds itself.
 */
async function candidates(program: Command, words: readonly string[]): Promise<readonly string[]> {
  // bash splits words at "=" and ":".
  const typed = words.filter((word, index) => word !== '=' && word !== ':' && words[index - 1] !== ':');
  const current = words.at(-1) === '=' ? '' : (typed.pop() ?? '');
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  let config = DEFAULT_CONFIG_FILE;
  let command = program;
  const optionOf = (flag: string): Option | undefined =>
    help.visibleOptions(command).find(({ short, long }) => short === flag || long === flag);
  let expecting: Option | undefined;
  let operands = 0;
  for (const word of typed.flatMap((one) => (/^--[^=]*=/.test(one) ? splitAssignment(one) : [one]))) {
    if (expecting !== undefined) {
      if (expecting.long === '--config') config = word.replace(/^~(?=\/)/, homedir());
      expecting = undefined;
    } else if (word.startsWith('-')) {
      const option = optionOf(word);
      if (option?.required) expecting = option;
    } else if (command === program) {
      const named = commands.find((one) => one.name() === word);
      if (named === undefined) return [];
      command = named;
    } else operands += 1;
  }
  if (expecting !== undefined) return await valuesOf(expecting.flags, expecting.argChoices, config);
  const [flag = '', value] = splitAssignment(current);
  const option = value === undefined ? undefined : optionOf(flag);
  if (option !== undefined) {
    const values = await valuesOf(option.flags, option.argChoices, config);
    return values.map((one) => (one.startsWith(':') ? one : `${flag}=${one}`));
  }
  if (current.startsWith('-')) {
    return help
      .visibleOptions(command)
      .flatMap(({ short, long, description }) =>
        [short, long].flatMap((name) => (name ? `${name}\t${description}` : [])),
      );
  }
  const operand = command.registeredArguments[operands] ?? command.registeredArguments.at(-1);
  if (command === program || operand?.name() === 'command') {
    return commands.map((one) => `${one.name()}\t${one.summary()}`);
  }
  if (operand === undefined || (operands >= command.registeredArguments.length && !operand.variadic))
    return [];
  return await valuesOf(`<${operand.name()}>`, operand.argChoices, config);
}

/** Splits `--config=FILE`. */
function splitAssignment(word: string): readonly string[] {
  const at = word.indexOf('=');
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

/** Completions by the placeholder of a value. */
const KINDS: Readonly<Record<string, string>> = {
  diskimage: 'diskimages',
  provider: 'providers',
  directory: ':directories',
  image: ':files',
  file: ':files',
  path: ':files',
};

/** @param usage option usage with its placeholder: `-c, --config <file>` */
async function valuesOf(
  usage: string,
  choices: readonly string[] | undefined,
  config: string,
): Promise<readonly string[]> {
  if (choices !== undefined) return choices;
  const kind = KINDS[/[<[]([^>\]]*)/.exec(usage)?.[1] ?? ''];
  if (kind === undefined) return [];
  return kind.startsWith(':') ? [kind] : await namesIn(config, kind);
}

const NAMED = { items: { properties: { name: { format: 'text' } } } } as const;

/** Names of the non-abstract entries of a list in a configuration file. Returns none if the file cannot be read. */
async function namesIn(file: string, list: string): Promise<readonly string[]> {
  try {
    const document = await readYaml(file, '-c', { duplicateKeys: 'last', variables: process.env });
    const entries: unknown = Object(document.fitted({ properties: { [list]: NAMED } }).value)[list];
    return (Array.isArray(entries) ? entries : [])
      .filter((entry: unknown) => Object(entry).abstract !== true)
      .flatMap((entry: unknown) => (typeof Object(entry).name === 'string' ? [Object(entry).name] : []));
  } catch {
    return []; // pressing Tab must not print an error
  }
}
