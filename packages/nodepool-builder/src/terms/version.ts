import { readFileSync } from 'node:fs';

/** This package's version, as `--version` shows it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version }: { version?: unknown } = Object(JSON.parse(text));
  return String(version);
}
