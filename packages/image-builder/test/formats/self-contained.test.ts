import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { diskInformation } from '../../src/formats/disk-information.ts';
import { checkSelfContained } from '../../src/formats/self-contained.ts';
import type { ImageFile, ImageFormat } from '../../src/index.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { withCode } from '../with-code.ts';

async function check(file: ImageFile): Promise<void> {
  checkSelfContained(file, await diskInformation(file));
}

/** What an image must not name: a file of the host. */
const SECRET = 'the host’s secret';

interface Fixture {
  readonly directory: string;
  readonly secret: string;
  readonly image: (format: ImageFormat) => ImageFile;
  readonly create: (format: ImageFormat, ...args: readonly string[]) => ImageFile;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const secret = join(directory, 'secret');
  await writeFile(secret, SECRET.padEnd(1024 * 1024));
  const image = (format: ImageFormat): ImageFile => ({
    format,
    path: join(directory, `image.${format}`),
    size: 1,
  });
  const create = (format: ImageFormat, ...args: readonly string[]): ImageFile => {
    const file = image(format);
    execFileSync('qemu-img', ['create', '-q', '-f', format, ...args, file.path, '1M'], { stdio: 'ignore' });
    return file;
  };
  return { directory, secret, image, create };
}

for (const format of ['qcow2', 'vmdk', 'vdi', 'vhdx', 'vpc'] as const) {
  test(`an ordinary ${format} is fine`, async (t) => {
    const { create } = await setUp(t);
    await check(create(format));
  });
}

test('a raw image is data, whatever it begins with', async (t) => {
  const { create, secret } = await setUp(t);
  const { path, size } = create('qcow2', '-b', secret, '-F', 'raw');
  await check({ format: 'raw', path, size });
});

test('a backing file is refused', async (t) => {
  const { create, secret } = await setUp(t);
  await assert.rejects(
    check(create('qcow2', '-b', secret, '-F', 'raw')),
    withCode('conversion-failed', /image\.qcow2" refers to another file, ".*\/secret", .*flatten it/),
  );
});

test('one that is not there is refused as well', async (t) => {
  const { create } = await setUp(t);
  await assert.rejects(
    check(create('qcow2', '-u', '-b', 'no-such-file', '-F', 'raw')),
    withCode('conversion-failed'),
  );
});

test('an external data file is refused', async (t) => {
  const { create, directory } = await setUp(t);
  const data = join(directory, 'data');
  await assert.rejects(
    check(create('qcow2', '-o', `data_file=${data},data_file_raw=on`)),
    withCode('conversion-failed', /refers to another file, ".*\/data"/),
  );
});

test('a vmdk that is a list of extents is refused', async (t) => {
  const { create, image, secret } = await setUp(t);
  create('vmdk', '-o', 'subformat=monolithicFlat');
  const file = image('vmdk');
  const descriptor = await readFile(file.path, 'utf8');
  await writeFile(file.path, descriptor.replace('"image-flat.vmdk"', `"${secret}"`));
  await assert.rejects(check(file), withCode('conversion-failed', /refers to another file, ".*\/secret"/));
});

test('what is no image of its format is refused', async (t) => {
  const { secret } = await setUp(t);
  await assert.rejects(
    check({ format: 'qcow2', path: secret, size: 1 }),
    withCode('conversion-failed', /is no qcow2 image/),
  );
});
