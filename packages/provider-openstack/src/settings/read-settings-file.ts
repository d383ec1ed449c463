import { readFile } from 'node:fs/promises';
import { boolCoreTag, FAILSAFE_SCHEMA, loadAll, mergeTag, nullYaml11Tag, YAMLException } from 'js-yaml';
import { isMapping, type Mapping } from './mapping.ts';
import { candidates, FILE_VARIABLES, type FileKind, namedFile } from './search-path.ts';
import type { SettingsPlace } from './settings-request.ts';

/** A file that was found, and what it holds. */
export interface SettingsFile {
  readonly file: string;
  readonly content: Mapping;
}

/** Numbers stay as they are written: a project called 0123 or 1e5 is no number, and nor is such a password. */
const SCHEMA = FAILSAFE_SCHEMA.withTags(mergeTag, boolCoreTag, nullYaml11Tag);

/** The first file of that kind that can be read and is a mapping; of the others before it `warn` is told. */
export async function readSettingsFile(
  kind: FileKind,
  place: SettingsPlace,
): Promise<SettingsFile | undefined> {
  for (const file of candidates(kind, place)) {
    try {
      const content = parse(file, await readFile(file, 'utf8'));
      if (isMapping(content)) return { file, content };
      place.warn(`${file} is skipped: it holds no mapping`);
    } catch (error) {
      const reason = reasonOf(error as Error);
      if (reason !== undefined) place.warn(`${file} is skipped: ${reason}`);
      else if (file === namedFile(kind, place)) {
        place.warn(`${file} does not exist, though ${FILE_VARIABLES[kind]} names it`);
      }
    }
  }
  return undefined;
}

function parse(file: string, text: string): unknown {
  if (file.endsWith('json')) return JSON.parse(text);
  // A key that stands twice is no error to PyYAML: the second one counts.
  const [content = {}, ...others] = loadAll(text, { schema: SCHEMA, json: true });
  return others.length === 0 ? content : undefined;
}

/** The parsers' own messages quote the text, which may be a password. */
function reasonOf(error: Error): string | undefined {
  if (error instanceof YAMLException) {
    const { line = 0, column = 0 } = error.mark ?? {};
    return `it is no valid YAML at line ${line + 1}, column ${column + 1}`;
  }
  if (error instanceof SyntaxError) return 'it is no valid JSON';
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `it cannot be read (${code})`;
}
