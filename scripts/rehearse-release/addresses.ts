import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const FIELDS = ['author', 'homepage', 'bugs', 'repository'] as const;

/** Describes each package whose package.json lacks an author or an address that npm shows to users. */
export async function missingAddresses(checkout: string): Promise<string[]> {
  const missing: string[] = [];
  for await (const path of glob('packages/*/package.json', { cwd: checkout })) {
    const manifest = JSON.parse(await readFile(join(checkout, path), 'utf8')) as Record<string, unknown>;
    const fields = FIELDS.filter((field) => manifest[field] === undefined);
    if (fields.length > 0) missing.push(`${path} has no ${fields.join(', ')}`);
  }
  return missing.toSorted();
}
