// Not a unit test: it attaches loop devices.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import {
  detach,
  isAttached,
  type LoopDevice,
  loopDevices,
  loopsBelow,
} from '../../src/cleanup/loop-devices.ts';

const DEVICES: readonly LoopDevice[] = [
  { name: 'loop0', backingFile: '/staging/tmp/image0.raw' },
  { name: 'loop1', backingFile: '/staging-2/tmp/image0.raw' },
  { name: 'loop10', backingFile: '/dev/loop0' },
  { name: 'loop11', backingFile: '/dev/loop10' },
  { name: 'loop12', backingFile: '/dev/loop1' },
];

async function attach(t: TestContext, args: readonly string[], file: string): Promise<LoopDevice> {
  const path = execFileSync('losetup', ['--show', '--find', ...args, file], { encoding: 'utf8' }).trim();
  const loop = { name: basename(path), backingFile: file };
  t.after(async () => {
    if (await isAttached(loop)) await detach(loop);
  });
  return loop;
}

test('the loop devices of files below a directory are found, partitions before their devices', () => {
  const names = loopsBelow(DEVICES, ['/staging']).map(({ name }) => name);
  assert.deepEqual(names, ['loop11', 'loop10', 'loop0']);
});

test('loop devices are found and detached, including those of removed files', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'image0.raw');
  await writeFile(file, '');
  await truncate(file, 1024 * 1024);
  const whole = await attach(t, [], file);
  const part = await attach(t, ['--offset', '4096'], `/dev/${whole.name}`);
  await rm(file);
  const found = loopsBelow(await loopDevices(), [directory]);
  assert.deepEqual(found, [part, whole]);
  for (const loop of found) await detach(loop);
  // Another program, such as udev, may have a device open; the kernel detaches it when that ends.
  await waitUntil(
    'the end of the devices',
    async () => loopsBelow(await loopDevices(), [directory]).length === 0,
  );
});

test('a link to a loop device’s partition is removed with the device', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'image0.raw');
  await writeFile(file, Buffer.alloc(1024 * 1024));
  const loop = await attach(t, [], file);
  const link = `/dev/mapper/${basename(directory)}`;
  await mkdir('/dev/mapper', { recursive: true });
  await symlink(`../${loop.name}`, link);
  t.after(() => rm(link, { force: true }));
  await detach(loop);
  await assert.rejects(rm(link), { code: 'ENOENT' });
});

test('a loop device that has another backing file by now is left unchanged', async (t) => {
  const directory = await temporaryDirectory(t);
  const file = join(directory, 'image0.raw');
  await writeFile(file, Buffer.alloc(1024 * 1024));
  const loop = await attach(t, [], file);
  await detach({ ...loop, backingFile: join(directory, 'another') });
  assert.ok(await isAttached(loop));
});

test('loop devices are listed while another process attaches and detaches one', async (t) => {
  const file = join(await temporaryDirectory(t), 'image0.raw');
  await writeFile(file, '');
  await truncate(file, 1024 * 1024);
  const script = 'for i in $(seq 100); do losetup --detach "$(losetup --show --find "$0")" || exit 1; done';
  const other = spawn('sh', ['-c', script, file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(other, 'exit');
  while (other.exitCode === null && other.signalCode === null) await loopDevices();
  assert.deepEqual(await ended, [0, null]);
});
