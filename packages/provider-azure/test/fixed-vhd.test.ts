// Not a unit test: it runs qemu-img
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { diskSize, FOOTER_SIZE, vhdFooter } from '../src/fixed-vhd.ts';

const MEBIBYTE = 1_048_576;

/** Offset and length of the id in a footer. */
const ID = [68, 84] as const;

async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'vhd-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

test('a disk for Azure has whole MiB, and at least 20', () => {
  assert.equal(diskSize(1), 20 * MEBIBYTE);
  assert.equal(diskSize(20 * MEBIBYTE), 20 * MEBIBYTE);
  assert.equal(diskSize(20 * MEBIBYTE + 1), 21 * MEBIBYTE);
  assert.equal(diskSize(8 * 1024 * MEBIBYTE), 8 * 1024 * MEBIBYTE);
});

test('a raw disk with the footer is a VHD of exactly its size for qemu-img', async (t) => {
  const path = join(await directory(t), 'disk.vhd');
  for (const size of [20 * MEBIBYTE, 21 * MEBIBYTE, 3 * 1024 * MEBIBYTE, 200 * 1024 * MEBIBYTE]) {
    await writeFile(path, '');
    await truncate(path, size);
    await writeFile(path, vhdFooter(size, 'seed', new Date()), { flag: 'a' });
    const text = execFileSync('qemu-img', ['info', '--output=json', '-f', 'vpc', path], { encoding: 'utf8' });
    const information = JSON.parse(text) as Record<string, unknown>;
    assert.equal(information['virtual-size'], size);
  }
});

test('the VHD footer’s fields are the ones that qemu-img writes', async (t) => {
  const path = join(await directory(t), 'disk.vhd');
  for (const mebibytes of [20, 600, 5000, 140_000]) {
    const size = mebibytes * MEBIBYTE;
    execFileSync('qemu-img', [
      'create',
      '-f',
      'vpc',
      '-o',
      'subformat=fixed,force_size=on',
      path,
      String(size),
    ]);
    const theirs = await tail(path);
    const ours = vhdFooter(size, 'seed', new Date());
    // Features to data offset; sizes and geometry, which force_size=on leaves at its maximum; type.
    assert.deepEqual(ours.subarray(0, 24), theirs.subarray(0, 24));
    assert.deepEqual(ours.subarray(40, 56), theirs.subarray(40, 56));
    assert.deepEqual(ours.subarray(60, 64), theirs.subarray(60, 64));
  }
});

test('the VHD footer’s checksum covers all other bytes, and its id comes from the seed', () => {
  const at = new Date('2026-05-01T00:00:00Z');
  const footer = vhdFooter(20 * MEBIBYTE, 'seed', at);
  assert.equal(footer.length, FOOTER_SIZE);
  const without = Buffer.from(footer).fill(0, 64, 68);
  const sum = without.reduce((total, byte) => total + byte, 0);
  assert.equal(footer.readUInt32BE(64), 0xffff_ffff - sum);
  assert.deepEqual(vhdFooter(20 * MEBIBYTE, 'seed', at), footer);
  const other = vhdFooter(20 * MEBIBYTE, 'other', at);
  assert.notDeepEqual(other.subarray(...ID), footer.subarray(...ID));
});

async function tail(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const footer = Buffer.alloc(FOOTER_SIZE);
    await file.read(footer, 0, FOOTER_SIZE, size - FOOTER_SIZE);
    return footer;
  } finally {
    await file.close();
  }
}
