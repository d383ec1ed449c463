import { readFileSync } from 'node:fs';

/** This package's version, as `--version` shows it. */
export function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
