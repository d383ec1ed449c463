import { ConfigurationError } from './fault.ts';
import { readText } from './read-document.ts';
import { schemaFaults } from './schema-faults.ts';
import { lastOfEachName } from './source.ts';
import { type Position, parseYaml, type YamlDocument, YamlError } from './yaml-document.ts';

/** What the file of `-s` adds to the `env-vars` of disk images, by their names. */
export type SecureEnvVars = ReadonlyMap<string, Readonly<Record<string, string>>>;

interface SecureSource {
  readonly diskimages?:
    | readonly { readonly name: string; readonly 'env-vars'?: Readonly<Record<string, string>> | null }[]
    | null;
}

/** Keys of other parts of nodepool are left to them. */
const SCHEMA = {
  type: 'object',
  properties: {
    diskimages: {
      type: ['array', 'null'],
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          'env-vars': { type: ['object', 'null'], additionalProperties: { type: 'string' } },
        },
      },
    },
  },
};

/** The first line of an INI file; in YAML it would be a list, and the file has to be a mapping. */
const SECTION = /^(?:[^\S\n]*(?:[#;][^\n]*)?\n)*[^\S\n]*\[[\w -]+\]\s*\n/;

/**
 * Reads the file of `-s`: `diskimages`, each with its `name` and the `env-vars` that are kept apart.
 *
 * @throws ConfigurationError with every fault; none shows a value
 */
export async function readSecureFile(file: string): Promise<SecureEnvVars> {
  const text = await readText(file, '-s');
  if (SECTION.test(text)) {
    const reason = "the file is no YAML, but an INI file, such as the nodepool daemon's own secure.conf";
    const remedy = 'leave that to the daemon, and name a YAML file with diskimages, or none';
    throw refused(file, { line: 1, column: 1 }, reason, remedy);
  }
  const document = parse(file, text);
  const faults = schemaFaults(document, SCHEMA);
  if (faults.length > 0) throw new ConfigurationError(file, faults);
  const { diskimages } = document.value as SecureSource;
  return new Map(lastOfEachName(diskimages ?? []).map((entry) => [entry.name, entry['env-vars'] ?? {}]));
}

/** What the YAML reader says of a fault may quote a value. */
function parse(file: string, text: string): YamlDocument {
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw refused(
      file,
      error.position,
      'the YAML makes no sense there',
      'correct it, and put values in quotes',
    );
  }
}

function refused(file: string, position: Position, reason: string, remedy: string): ConfigurationError {
  return new ConfigurationError(file, [{ ...position, severity: 'error', reason, remedy }]);
}
