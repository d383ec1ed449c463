import type { AccessRight, AccessRules } from '@nodepool-builder/gearman-node';
import type { SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { ConfigurationError } from '../yaml/diagnostic.ts';
import { checkSchema } from '../yaml/schema-diagnostics.ts';
import {
  parseYaml,
  readText,
  readYaml,
  unreadable,
  type YamlDocument,
  type YamlOptions,
} from '../yaml/yaml-document.ts';

const RIGHTS: readonly AccessRight[] = ['submit', 'register', 'administer'];

const ACCESS_LIST = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    propertyNames: { enum: RIGHTS },
    additionalProperties: { type: 'array', items: { type: 'string' } },
  },
};

/**
 * Reads the file of `--access-list`, which maps common names of certificates to rights on a job server, each with the
 * prefixes of the functions that it covers.
 *
 * @throws ConfigurationError with line, reason and remedy of each error
 */
export async function loadAccessList(file: string): Promise<AccessRules> {
  const document = await readYaml(file, '--access-list');
  checkSchema(document, ACCESS_LIST);
  return document.value as AccessRules;
}

/** Schema of the file of `-s`. Other parts of nodepool may have keys there. */
const SECURE_FILE = {
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
} as const satisfies SettingsSchema;

/** `env-vars` of disk images, by the name of the disk image. */
export type SecureEnvVars = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** The first line of an INI file. In YAML it would be a list, but the file has to be a mapping. */
const SECTION = /^(?:[^\S\n]*(?:[#;][^\n]*)?\n)*[^\S\n]*\[[\w -]+\]\s*\n/;

/**
 * Reads the file of `-s`: `diskimages`, each with its `name` and its secret `env-vars`.
 *
 * @param variables see {@link YamlOptions.variables}
 * @throws ConfigurationError with each error; no message contains a value
 */
export async function readSecureFile(
  file: string,
  variables: NonNullable<YamlOptions['variables']>,
): Promise<SecureEnvVars> {
  const text = await readText(file, '-s');
  if (SECTION.test(text)) {
    const reason = "the file is not YAML, but an INI file, such as the nodepool daemon's secure.conf";
    const remedy = 'name a YAML file with diskimages, or none';
    throw unreadable(file, { line: 1, column: 1 }, reason, remedy);
  }
  const document = parseSecrets(file, text, { variables });
  checkSchema(document, SECURE_FILE);
  const { diskimages } = document.value as SettingsOf<typeof SECURE_FILE>;
  return new Map((diskimages ?? []).map((entry) => [entry.name, entry['env-vars'] ?? {}]));
}

function parseSecrets(file: string, text: string, options: YamlOptions): YamlDocument {
  try {
    return parseYaml(file, text, options);
  } catch (error) {
    // The parser's message may quote a value.
    const position = error instanceof ConfigurationError ? error.diagnostics[0] : undefined;
    if (position === undefined) throw error;
    const { line, column } = position;
    const remedy = 'correct it, and put values in quotes';
    throw unreadable(file, { line, column }, 'the YAML is invalid there', remedy);
  }
}
