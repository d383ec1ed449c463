import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { LIST_PACKAGES } from '../src/dib-elements.ts';

/** Returns the lines that the script prints with other programs first in its PATH. */
export function listPackages(
  directory: string,
  env: Readonly<Record<string, string>> = {},
): readonly string[] {
  const { stdout, stderr, status } = spawnSync('sh', [LIST_PACKAGES], {
    encoding: 'utf8',
    env: { PATH: `${directory}:${process.env.PATH}`, ...env },
    maxBuffer: 2 ** 24,
  });
  assert.equal(status, 0, stderr);
  return stdout.split('\n');
}
