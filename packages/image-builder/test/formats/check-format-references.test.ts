import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { checkDisk, checkSelfContained } from '../../src/formats/check-format.ts';
import { convertImage } from '../../src/formats/convert.ts';
import type { DiskFile } from '../../src/formats/disk-information.ts';
import type { ImageFormat } from '../../src/index.ts';

interface Fixture {
  readonly directory: string;
  /** A host file that an image must not refer to. */
  readonly secret: string;
  readonly image: (format: ImageFormat) => DiskFile;
  readonly create: (format: ImageFormat, ...args: readonly string[]) => DiskFile;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const secret = join(directory, 'secret');
  await writeFile(secret, 'the host’s secret'.padEnd(1024 * 1024));
  const image = (format: ImageFormat): DiskFile => ({ format, path: join(directory, `image.${format}`) });
  const create = (format: ImageFormat, ...args: readonly string[]): DiskFile => {
    const file = image(format);
    execFileSync('qemu-img', ['create', '-q', '-f', format, ...args, file.path, '1M'], { stdio: 'ignore' });
    return file;
  };
  return { directory, secret, image, create };
}

/** Starts a conversion that would wait for a FIFO, or copy its content. */
async function convert(file: DiskFile): Promise<void> {
  await convertImage(file, 'raw', `${file.path}.raw`, { signal: AbortSignal.timeout(10_000) });
}

const REFUSED = withCode('image-not-self-contained', /image\.\w+" names another file, ".+", .*flatten it/);

for (const [format, ...options] of [
  ['qcow2'],
  ['qcow2', '-o', 'compat=0.10'],
  ['vmdk'],
  ['vmdk', '-o', 'subformat=streamOptimized'],
  ['vdi'],
  ['vhdx'],
  ['vpc'],
  ['vpc', '-o', 'subformat=fixed'],
] as const) {
  test(`an ordinary ${[format, ...options].join(' ')} image is accepted`, async (t) => {
    const { create } = await setUp(t);
    await checkDisk(create(format, ...options));
  });
}

test('a raw image is only data for qemu-img, whatever its first bytes are', async (t) => {
  const { create, secret } = await setUp(t);
  const { path } = create('qcow2', '-b', secret, '-F', 'raw');
  await checkDisk({ format: 'raw', path });
  await assert.rejects(checkSelfContained({ path }), REFUSED);
});

test('an image with a backing file is rejected, even if the file is missing', async (t) => {
  const { create, secret } = await setUp(t);
  for (const options of [
    ['-b', secret, '-F', 'raw'],
    ['-u', '-b', 'no-such-file', '-F', 'raw'],
    ['-u', '-b', 'json:{"driver":"raw","file.filename":"/etc/passwd"}', '-F', 'raw'],
    ['-o', 'compat=0.10', '-u', '-b', secret, '-F', 'raw'],
  ]) {
    await assert.rejects(convert(create('qcow2', ...options)), REFUSED);
  }
});

test('an image with the expected backing file is accepted', async (t) => {
  const { create, secret } = await setUp(t);
  const overlay = create('qcow2', '-b', secret, '-F', 'raw');
  await checkDisk(overlay, secret);
  await assert.rejects(checkDisk(overlay, `${secret}-other`), REFUSED);
});

test('an image with an external data file is rejected, even with only its header bit or only its name', async (t) => {
  const { create, directory } = await setUp(t);
  const data = join(directory, 'data');
  const file = create('qcow2', '-o', `data_file=${data},data_file_raw=on`);
  const header = await readFile(file.path);
  await assert.rejects(convert(file), withCode('image-not-self-contained', /another file, ".*\/data"/));
  const withoutBit = Buffer.from(header);
  withoutBit.writeUInt32BE(0, 76);
  const withoutName = Buffer.from(header);
  withoutName.writeUInt32BE(0, header.readUInt32BE(100));
  for (const changed of [withoutBit, withoutName]) {
    await writeFile(file.path, changed);
    await assert.rejects(convert(file), REFUSED);
  }
});

for (const subformat of ['monolithicFlat', 'twoGbMaxExtentSparse', 'twoGbMaxExtentFlat']) {
  test(`a vmdk image of type ${subformat}, which is a list of extents, is rejected`, async (t) => {
    const { create } = await setUp(t);
    await assert.rejects(convert(create('vmdk', '-o', `subformat=${subformat}`)), REFUSED);
  });
}

/** Creates a descriptor that refers to a host file. */
function descriptorOf(extent: string): string {
  return `# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\nRW 8 FLAT "${extent}" 0\n`;
}

test('a vmdk image whose extent is a FIFO is rejected before a program waits for it', async (t) => {
  const { image, directory } = await setUp(t);
  const fifo = join(directory, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const file = image('vmdk');
  const descriptor = descriptorOf(fifo);
  for (const text of [
    descriptor,
    `\n${descriptor}`,
    `text\n${descriptor}`,
    descriptor.replaceAll(' ', '\n'),
  ]) {
    await writeFile(file.path, text);
    await assert.rejects(convert(file), REFUSED);
  }
});

test('a sparse vmdk image whose descriptor names a parent or other extents is rejected', async (t) => {
  const { create, secret } = await setUp(t);
  const file = create('vmdk');
  const whole = await readFile(file.path);
  const withDescriptor = async (text: string, capacity: number): Promise<void> => {
    const changed = Buffer.from(whole);
    changed.writeBigUInt64LE(BigInt(capacity), 12);
    changed.write(`${text}\0`, 512);
    await writeFile(file.path, changed);
  };
  await withDescriptor(descriptorOf('image.vmdk'), 2048);
  await checkDisk(file);
  for (const [text, capacity] of [
    [descriptorOf(secret), 2048],
    [`${descriptorOf('image.vmdk')}parentFileNameHint="${secret}"\n`, 2048],
    [`${descriptorOf('image.vmdk')}RW 8 FLAT "other" 0\n`, 2048],
    [descriptorOf('image.vmdk'), 0],
  ] as const) {
    await withDescriptor(text, capacity);
    await assert.rejects(convert(file), REFUSED);
  }
});

test('a vhd, vhdx or vdi image that names a parent is rejected', async (t) => {
  const { create } = await setUp(t);
  const vhd = create('vpc');
  const vdi = create('vdi');
  const vhdx = create('vhdx');
  for (const [file, change] of [
    [vhd, (bytes: Buffer) => bytes.writeUInt32BE(4, 60)],
    [vdi, (bytes: Buffer) => bytes.writeUInt32LE(4, 0x4c)],
    [vdi, (bytes: Buffer) => bytes.fill(1, 0x1b8, 0x1c8)],
    [vhdx, setHasParent],
  ] as const) {
    const bytes = await readFile(file.path);
    await checkDisk(file);
    const changed = { ...file, path: `${file.path}.changed` };
    await copyFile(file.path, changed.path);
    change(bytes);
    await writeFile(changed.path, bytes);
    await assert.rejects(convert(changed), withCode('image-not-self-contained', /"a parent"/));
  }
});

/** Sets the bit of the file parameters, which come first in QEMU's metadata. */
function setHasParent(bytes: Buffer): void {
  const metadata = bytes.indexOf('metadata', 512 * 1024);
  const parameters = metadata + bytes.readUInt32LE(metadata + 32 + 16);
  bytes.writeUInt32LE(0x2, parameters + 4);
}

test('an image without its format’s header is not passed to qemu-img', async (t) => {
  const { create, image } = await setUp(t);
  const { path } = create('vdi');
  await assert.rejects(
    checkDisk({ format: 'qcow2', path }),
    withCode('conversion-failed', /is not a qcow2 image/),
  );
  for (const format of ['qcow2', 'vmdk', 'vdi', 'vhdx', 'vpc', 'vhd'] as const) {
    const file = image(format);
    for (const size of [0, 1, 3, 511, 70_000]) {
      await writeFile(file.path, '');
      await truncate(file.path, size);
      await assert.rejects(checkDisk(file), withCode('conversion-failed', /has no header of that format/));
    }
  }
});

test('an image header truncated at any length is read without an error', async (t) => {
  const { create, secret } = await setUp(t);
  for (const format of ['qcow2', 'vmdk', 'vdi', 'vhdx', 'vpc'] as const) {
    const file = create(format, ...(format === 'qcow2' ? ['-b', secret, '-F', 'raw'] : []));
    const bytes = await readFile(file.path);
    if (format === 'vpc') bytes.writeUInt32BE(4, 60);
    for (let length = 0; length < 1200; length += 7) {
      await writeFile(file.path, bytes.subarray(0, length));
      await checkSelfContained(file).catch((error: unknown) => {
        if (!REFUSED(error)) throw error;
      });
    }
  }
});

test('an image is read only if it is a regular file', async (t) => {
  const { create, directory } = await setUp(t);
  const { path } = create('qcow2');
  const [fifo, link, folder] = ['fifo', 'link', 'folder'].map((name) => join(directory, name));
  execFileSync('mkfifo', [fifo ?? '']);
  await symlink(path, link ?? '');
  await mkdir(folder ?? '');
  for (const other of [fifo, link, folder, '/dev/null']) {
    const disk = { format: 'qcow2', path: other ?? '' } as const;
    await assert.rejects(checkDisk(disk), withCode('image-missing', /is not a regular file/));
    await assert.rejects(checkDisk({ ...disk, format: 'raw' }), withCode('image-missing'));
  }
});
