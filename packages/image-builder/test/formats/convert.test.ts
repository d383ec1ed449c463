import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mountTmpfs, temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { DiskSpaceGuard } from '../../src/disk-space.ts';
import { conversionSource, convertImage, isConvertible } from '../../src/formats/convert.ts';
import { formatRow } from '../../src/formats.ts';
import { FORMAT_NAMES, type ImageFile, type ImageFormat, type Progress } from '../../src/index.ts';

const MEBIBYTE = 1024 * 1024;

/** Formats that qemu-img converts into each other. */
const CONVERTIBLE = FORMAT_NAMES.filter(isConvertible);

interface Fixture {
  readonly directory: string;
  readonly source: ImageFile;
}

/** Creates a raw image of 8 MiB with holes. */
async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'source.raw');
  const handle = await open(path, 'w');
  await handle.write(randomBytes(MEBIBYTE), 0, MEBIBYTE, 2 * MEBIBYTE);
  await handle.truncate(8 * MEBIBYTE);
  await handle.close();
  return { directory, source: { format: 'raw', path, size: 8 * MEBIBYTE } };
}

function driverOf(format: ImageFormat): string {
  return formatRow(format).qemuDriver ?? assert.fail(`${format} has no driver`);
}

async function convert(
  { directory, source }: Fixture,
  format: ImageFormat,
  name: string = `image.${format}`,
): Promise<ImageFile> {
  const path = join(directory, name);
  await convertImage(source, format, path);
  return { format, path, size: (await stat(path)).size };
}

for (const format of CONVERTIBLE) {
  test(`an image keeps its content when it is converted to ${format} and back to raw`, async (t) => {
    const fixture = await setUp(t);
    const image = await convert(fixture, format);
    const info = execFileSync('qemu-img', ['info', '--output=json', '-f', driverOf(format), image.path], {
      encoding: 'utf8',
    });
    // Virtual PC rounds up to whole cylinders.
    const padding = JSON.parse(info)['virtual-size'] - 8 * MEBIBYTE;
    assert.ok(
      padding === 0 || (format === 'vpc' && padding > 0 && padding < MEBIBYTE),
      `padded by ${padding}`,
    );
    const back = await convert({ ...fixture, source: image }, 'raw', 'back.raw');
    execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', fixture.source.path, back.path]);
  });
}

test('a converted qcow2 image can be compressed, other formats are not', async (t) => {
  const { directory, source } = await setUp(t);
  await writeFile(source.path, Buffer.alloc(8 * MEBIBYTE, 'compressible '));
  for (const format of ['qcow2', 'vmdk'] as const) {
    const path = join(directory, `compressed.${format}`);
    await convertImage(source, format, path, { compress: true });
    const { size } = await stat(path);
    assert.equal(size < 4 * MEBIBYTE, format === 'qcow2', `${format} has ${size} bytes`);
    execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', format, source.path, path]);
  }
});

test('a raw image keeps its holes in a conversion', async (t) => {
  const fixture = await setUp(t);
  const qcow2 = await convert(fixture, 'qcow2');
  const { path } = await convert({ ...fixture, source: qcow2 }, 'raw', 'back.raw');
  assert.ok((await stat(path)).blocks * 512 < 2 * MEBIBYTE);
});

test('a raw image that begins like a qcow2 header naming another file is copied unchanged', async (t) => {
  const { directory, source } = await setUp(t);
  const trap = join(directory, 'trap.raw');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', source.path, '-F', 'raw', trap]);
  const { size } = await stat(trap);
  const target = join(directory, 'target.raw');
  await convertImage({ format: 'raw', path: trap }, 'raw', target);
  execFileSync('cmp', ['--bytes', `${size}`, trap, target]);
});

test('a converted image has its source’s modification time', async (t) => {
  const fixture = await setUp(t);
  await utimes(fixture.source.path, 1_000, 2_000);
  const { path } = await convert(fixture, 'qcow2');
  assert.equal((await stat(path)).mtimeMs, 2_000_000);
});

test('the progress of a conversion ends at 100 percent', async (t) => {
  const { directory, source } = await setUp(t);
  const seen: Progress[] = [];
  await convertImage(source, 'qcow2', join(directory, 'image.qcow2'), {
    onProgress: (progress) => seen.push(progress),
  });
  assert.deepEqual(seen.at(-1), { done: 100, total: 100 });
});

test('the raw file is the preferred source of a conversion, and only disks are sources', () => {
  for (const [formats, source] of [
    [['qcow2', 'raw'], 'raw'],
    [['vmdk', 'vhd'], 'vhd'],
    [['tar', 'vdi', 'iso'], 'vdi'],
    [['tar', 'tgz', 'squashfs', 'aci', 'iso'], undefined],
  ] as const) {
    const files = formats.map((format) => ({ format, path: `/images/a.${format}`, size: 1 }));
    assert.equal(conversionSource(files)?.format, source, formats.join(' '));
  }
});

test('a conversion rejects a source that is not an image in its format', async (t) => {
  const { directory } = await setUp(t);
  const path = join(directory, 'damaged.qcow2');
  await writeFile(path, randomBytes(MEBIBYTE));
  await assert.rejects(
    convertImage({ format: 'qcow2', path }, 'raw', join(directory, 'image.raw')),
    withCode('conversion-failed', /damaged\.qcow2" is not a qcow2 image/),
  );
});

test('a conversion to a target that cannot be written fails with qemu-img’s words', async (t) => {
  const { source } = await setUp(t);
  const readOnly = await mountTmpfs(t, 'ro');
  await assert.rejects(
    convertImage(source, 'qcow2', join(readOnly, 'image.qcow2')),
    withCode('conversion-failed', /could not be converted to qcow2: .*Read-only file system/),
  );
});

test('an abort before a conversion leaves nothing, and one during it rejects with its reason', async (t) => {
  const { directory, source } = await setUp(t);
  const before = join(directory, 'before.qcow2');
  await assert.rejects(convertImage(source, 'qcow2', before, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  assert.deepEqual(await readdir(directory), ['source.raw']);
  const abort = new AbortController();
  const reason = new Error('enough');
  const conversion = convertImage(source, 'qcow2', join(directory, 'image.qcow2'), {
    signal: abort.signal,
    onProgress: () => abort.abort(reason),
  });
  await assert.rejects(conversion, reason);
});

test('a conversion is rejected before anything is written if the file system lacks the space', async (t) => {
  const { source } = await setUp(t);
  const small = await mountTmpfs(t, 'size=256k');
  await assert.rejects(
    convertImage(source, 'qcow2', join(small, 'image.qcow2')),
    withCode('disk-full', /source\.raw" could not be converted in .*free space there/),
  );
  assert.deepEqual(await readdir(small), []);
});

test('a conversion fails with disk-full if the file system fills up', async (t) => {
  const { directory, source } = await setUp(t);
  const scattered = { ...source, path: join(directory, 'scattered.raw') };
  const handle = await open(scattered.path, 'w');
  for (let at = 0; at < 8; at += 1) await handle.write('x', at * MEBIBYTE);
  await handle.close();
  // A vdi allocates a whole MiB for each of them, which `qemu-img measure` does not consider.
  const small = await mountTmpfs(t, 'size=3m');
  await assert.rejects(
    convertImage(scattered, 'vdi', join(small, 'image.vdi')),
    withCode('disk-full', /No space left on device/),
  );
});

test('a conversion of a compressed image reserves space for its uncompressed data', async (t) => {
  const { directory, source } = await setUp(t);
  const qcow2 = join(directory, 'packed.qcow2');
  const zeros = join(directory, 'zeros.raw');
  // 16 MiB of equal bytes, which are small as a compressed qcow2, and too large for the file system as raw.
  await writeFile(zeros, Buffer.alloc(16 * MEBIBYTE, 'x'));
  execFileSync('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', zeros, qcow2]);
  const small = await mountTmpfs(t, 'size=4m');
  await assert.rejects(
    convertImage({ ...source, format: 'qcow2', path: qcow2 }, 'raw', join(small, 'image.raw')),
    withCode('disk-full', /bytes more are needed/),
  );
  assert.deepEqual(await readdir(small), []);
});

test('concurrent conversions reserve disk space together', async (t) => {
  const { source } = await setUp(t);
  const small = await mountTmpfs(t, 'size=1900k');
  const space = new DiskSpaceGuard();
  const results = await Promise.allSettled(
    ['one', 'other'].map((name) => convertImage(source, 'qcow2', join(small, name), { space })),
  );
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected');
  assert.match(String(refused?.reason), /bytes more are needed/);
});

test('a disk for Azure is a fixed VHD of whole mebibytes with the same content', async (t) => {
  const { directory, source } = await setUp(t);
  const odd = { ...source, path: join(directory, 'odd.raw'), size: 5 * MEBIBYTE + 512 };
  await writeFile(odd.path, randomBytes(odd.size));
  const path = join(directory, 'image.vhd-fixed');
  await convertImage(odd, 'vhd-fixed', path);
  assert.equal((await stat(path)).size, 6 * MEBIBYTE + 512, 'the disk and its footer');
  const file = await readFile(path);
  assert.equal(file.toString('latin1', 6 * MEBIBYTE, 6 * MEBIBYTE + 8), 'conectix');
  assert.equal(file.readUInt32BE(6 * MEBIBYTE + 60), 2, 'fixed');
  assert.deepEqual(file.subarray(0, odd.size), await readFile(odd.path));
  assert.ok(file.subarray(odd.size, 6 * MEBIBYTE).every((byte) => byte === 0));
});

test('a disk above the size limit is not converted, however small its file is', async (t) => {
  const { directory } = await setUp(t);
  const path = join(directory, 'large.qcow2');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '400G']);
  const target = join(directory, 'image.raw');
  await assert.rejects(
    convertImage({ format: 'qcow2', path }, 'raw', target),
    withCode(
      'image-too-large',
      /the disk in ".*large\.qcow2" has 400 GiB, more than 256; .*virtual-size-limit/,
    ),
  );
  await convertImage({ format: 'qcow2', path }, 'vdi', join(directory, 'image.vdi'), {
    maxDiskSize: 2 ** 40,
  });
});

for (const command of ['info', 'measure', 'check', 'convert']) {
  const limit = command === 'convert' ? 14_400 : 600;
  test(`a "qemu-img ${command}" that hangs is killed`, async (t) => {
    const { directory } = await setUp(t);
    const path = join(directory, 'source.qcow2');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '1M']);
    const program = execFileSync('which', ['qemu-img'], { encoding: 'utf8' }).trim();
    const script = `#!/bin/sh\n[ "$1" = ${command} ] && exec sleep 1000\nexec ${program} "$@"\n`;
    await writeFile(join(directory, 'qemu-img'), script, { mode: 0o755 });
    const { PATH } = process.env;
    t.after(() => (process.env.PATH = PATH));
    process.env.PATH = `${directory}:${PATH}`;
    const { setTimeout } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (run: () => void, delay: number) =>
      setTimeout(run, delay === limit * 1_000 ? 1_000 : delay),
    );
    await assert.rejects(
      convertImage({ format: 'qcow2', path }, 'vdi', join(directory, 'image.vdi')),
      withCode('conversion-failed', new RegExp(`took longer than ${limit} s`)),
    );
  });
}
