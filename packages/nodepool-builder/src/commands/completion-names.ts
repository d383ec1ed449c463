import type { Command } from 'commander';
import { configOption } from './options.ts';

/** `completion-names KIND`: prints names of the configuration file, for the scripts. An unreadable file has none. */
export function registerCompletionNames(program: Command): void {
  program
    .command('completion-names', { hidden: true })
    .description('Prints the names of a list in the configuration file.')
    .argument('<kind>')
    .addOption(configOption())
    .action(async (kind: string, { config }: { config: string }) => {
      for (const name of await namesIn(config, kind)) console.log(name);
    });
}

const NAMED = { items: { properties: { name: { format: 'text' } } } } as const;

/** Names of the entries of a list in a configuration file, without abstract ones. It need not be valid. */
async function namesIn(file: string, kind: string): Promise<readonly string[]> {
  const { readYaml } = await import('../yaml/yaml-document.ts');
  try {
    const document = await readYaml(file, '-c', { duplicateKeys: 'last', variables: process.env });
    const source = document.fitted({ properties: { [kind]: NAMED } }).value;
    const entries: unknown = isRecord(source) ? source[kind] : undefined;
    return (Array.isArray(entries) ? entries : [])
      .filter((entry: unknown) => isRecord(entry) && entry.abstract !== true)
      .flatMap(({ name }: { name?: unknown }) => (typeof name === 'string' ? [name] : []));
  } catch {
    return []; // a key press must not print an error
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
