import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { writeConfigDrive } from '../../src/qemu/instance-directory.ts';

const REQUEST = { buildId: 'debian-0000000001', publicKey: 'ssh-ed25519 AAAA builder\n' };

test('a config drive contains the key and, if given, the user data', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'config-drive-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const latest = join(directory, 'openstack/latest');
  await writeConfigDrive(directory, 'an-id', REQUEST);
  assert.deepEqual(await readdir(latest), ['meta_data.json']);
  assert.deepEqual(JSON.parse(await readFile(join(latest, 'meta_data.json'), 'utf8')), {
    uuid: 'an-id',
    name: 'debian-0000000001',
    public_keys: { 'nodepool-builder': 'ssh-ed25519 AAAA builder' },
  });
  await writeConfigDrive(directory, 'an-id', { ...REQUEST, userData: '#cloud-config\n' });
  assert.equal(await readFile(join(latest, 'user_data'), 'utf8'), '#cloud-config\n');
});
