// Not a unit test: it runs systemctl with other directories of units.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';

const HOOKS = join(import.meta.dirname, '../elements/debian-fixes/post-install.d');

/** Enables the unit as diskimage-builder 3.37's element cloud-init does. Returns the remaining local units. */
async function enableCloudInit(t: TestContext, unit: string): Promise<readonly string[]> {
  const directory = temporaryDirectory(t);
  const [packaged, local] = [join(directory, 'packaged'), join(directory, 'local')];
  for (const path of [packaged, local]) await mkdir(path);
  await writeFile(
    join(packaged, unit),
    '[Unit]\nDescription=cloud-init\n[Install]\nWantedBy=cloud-init.target\n',
  );
  const script = `set -e
mount --bind ${packaged} /usr/lib/systemd/system
mount --bind ${local} /etc/systemd/system
${HOOKS}/19-debian-fixes
SYSTEMD_OFFLINE=1 systemctl enable cloud-init.service
${HOOKS}/21-debian-fixes`;
  const { status, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return await readdir(local);
}

test('debian-fixes lets the element cloud-init enable cloud-init.service, which cloud-init 25 has renamed', async (t) => {
  assert.deepEqual(await enableCloudInit(t, 'cloud-init-network.service'), []);
});

test('debian-fixes leaves the unit of an older cloud-init to the element cloud-init', async (t) => {
  assert.deepEqual(await enableCloudInit(t, 'cloud-init.service'), ['cloud-init.target.wants']);
});
