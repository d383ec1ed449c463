import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);

test('disk-image-create makes a raw and a qcow2 image of mini-os with what install.d wrote', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mini-os-'));
  t.after(() => rm(directory, { recursive: true }));
  const output = join(directory, 'mini');

  await run('disk-image-create', ['--no-tmpfs', '-t', 'qcow2,raw', '-o', output, 'mini-os'], {
    env: {
      ...process.env,
      ELEMENTS_PATH: import.meta.dirname,
      TMP_DIR: directory,
      DIB_IMAGE_CACHE: join(directory, 'cache'),
      DIB_LOCKFILES: join(directory, 'locks'),
      MINI_MARK: 'made by the test',
      MINI_PAYLOAD_MB: '3',
    },
  });

  assert.deepEqual((await readdir(directory)).toSorted(), ['cache', 'locks', 'mini.qcow2', 'mini.raw']);
  const mark = await run('debugfs', ['-R', 'cat /etc/mini-mark', `${output}.raw`]);
  assert.equal(mark.stdout, 'made by the test\n');
  const payload = await run('debugfs', ['-R', 'stat /payload', `${output}.raw`]);
  assert.match(payload.stdout, /Size: 3145728\b/);
  await run('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', `${output}.raw`, `${output}.qcow2`]);
});
