import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { gearman, offeredFunctions } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createMiniLinuxSite } from '../fixtures/mini-linux-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const SETUP = `#!/bin/sh
echo "setting up $1 for $NODEPOOL_REGION with $GREETING from $NODEPOOL_SCRIPTDIR"
echo "$1" > /etc/made-of
`;

it('a builder makes an image on an instance, with the real gearmand, QEMU and an SSH server', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createMiniLinuxSite(server.port, {
    node: {
      'env-vars': { GREETING: 'a greeting', NODEPOOL_REGION: 'Middle-earth' },
      'on-instance': {
        setup: 'prepare.sh',
        steps: ['cat part/more.txt >> /etc/made-of; echo to stderr >&2'],
      },
    },
  });
  undoAfter(t, () => site.remove());
  await mkdir(join(site.directory, 'scripts/part'));
  await writeFile(join(site.directory, 'scripts/prepare.sh'), SETUP);
  await writeFile(join(site.directory, 'scripts/part/more.txt'), 'and more\n');
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGTERM'));
  const offered = (): Promise<string[]> => offeredFunctions(server.port);
  await waitUntil('image-build:node', async () => (await offered()).includes('image-build:node'));

  const build = await gearman(server.port, 'image-build:node', '{"image-id": "0000000001"}');
  assert.deepEqual(build, { code: 0, stdout: '{"image-id": "0000000001"}', stderr: '' });
  assert.deepEqual(await offered(), [
    'image-build:node',
    'image-delete:0000000001',
    'image-upload:0000000001',
  ]);
  const workspace = join(site.images, '.nodepool-builder');
  const log = await readFile(join(workspace, 'logs/0000000001.log'), 'utf8');
  // The log hides the values of env-vars.
  assert.match(log, /setting up node for \*{3} with \*{3} from \/opt\/nodepool-scripts\n.*to stderr\n/s);
  assert.match(log, /the host key is SHA256:\S+, announced by the console/);

  const argument = '{"provider": "pool", "image-name": "node"}';
  const upload = await gearman(server.port, 'image-upload:0000000001', argument);
  assert.deepEqual(upload, { code: 0, stdout: '{"external-id": "node-0000000001.raw"}', stderr: '' });
  const uploaded = join(site.pool, 'node-0000000001.raw');
  const look = (request: string): string =>
    execFileSync('debugfs', ['-R', request, uploaded], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  assert.equal(look('cat /etc/made-of'), 'node\nand more\n');
  assert.equal(look('cat /root/.ssh/authorized_keys'), '', 'the key of the build no longer permits a login');
  assert.doesNotMatch(look('ls -p /root'), /nodepool-builder/, 'nor is anything left of how it was made');

  const deletion = await gearman(server.port, 'image-delete:0000000001', '""');
  assert.deepEqual(deletion, { code: 0, stdout: '', stderr: '' });
  for (const place of ['instances', 'qemu-machines', 'manifests', 'staging']) {
    assert.deepEqual(await readdir(join(workspace, place)), [], place);
  }
  await waitUntil('no functions', async () => (await offered()).length === 1);
});
