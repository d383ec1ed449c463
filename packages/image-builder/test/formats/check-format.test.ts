import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { checkFormat } from '../../src/formats/check-format.ts';
import { FORMAT_NAMES, formatRow } from '../../src/formats.ts';

const execute = promisify(execFile);

test('random bytes are accepted only as a raw image', async (t) => {
  const path = join(await temporaryDirectory(t), 'random');
  await writeFile(path, randomBytes(1_048_576));
  await checkFormat({ format: 'raw', path });
  await checkFormat({ format: 'aci', path });
  for (const format of FORMAT_NAMES.filter((name) => name !== 'raw' && name !== 'aci')) {
    await assert.rejects(checkFormat({ format, path }), withCode('conversion-failed'), format);
  }
});

test('a disk is accepted only as the format that qemu-img made', async (t) => {
  const directory = await temporaryDirectory(t);
  for (const format of ['qcow2', 'vmdk', 'vdi', 'vhdx', 'vpc'] as const) {
    const path = join(directory, `disk.${format}`);
    await execute('qemu-img', ['create', '-q', '-f', format, path, '4M']);
    for (const other of FORMAT_NAMES.filter((name) => name !== 'aci')) {
      const isSame = formatRow(other).qemuDriver === format;
      if (isSame) await checkFormat({ format: other, path });
      else await assert.rejects(checkFormat({ format: other, path }), withCode('conversion-failed'), other);
    }
  }
});

test('archives are recognized by their signatures', async (t) => {
  const directory = await temporaryDirectory(t);
  await mkdir(join(directory, 'tree'));
  const path = (name: string): string => join(directory, name);
  await execute('tar', ['-cf', path('a.tar'), 'tree'], { cwd: directory });
  await execute('tar', ['-czf', path('a.tgz'), 'tree'], { cwd: directory });
  const iso = Buffer.alloc(40_960);
  iso.write('CD001', 32_769);
  await writeFile(path('a.iso'), iso);
  await writeFile(path('a.squashfs'), 'hsqs and so on');
  const formats = ['tar', 'tgz', 'iso', 'squashfs'] as const;
  for (const format of formats) {
    for (const other of formats) {
      const check = checkFormat({ format: other, path: path(`a.${format}`) });
      if (format === other) await check;
      else await assert.rejects(check, withCode('conversion-failed'), `${format} as ${other}`);
    }
  }
});
