import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { namedInstallation } from '../../../scripts/fresh-machine/named-installation.ts';

test('only the command line after the heading in scripts/setup.sh is used', async () => {
  const setup = await readFile(join(import.meta.dirname, '../../../scripts/setup.sh'), 'utf8');
  const [, heading] = /echo '(setup: Debian packages are missing;[^']*)'/.exec(setup) ?? [];
  const line = 'sudo apt-get install qemu-utils && sudo rm /etc/file';
  assert.equal(namedInstallation(`npm warn\n${heading}\n${line}\nnpm error\n`), line);
  assert.equal(namedInstallation('npm error code 1\n'), undefined);
});
