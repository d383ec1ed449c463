import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dibEnvironment } from '../../src/dib/environment.ts';
import { withCode } from '../with-code.ts';

const DISKIMAGE = { name: 'debian', formats: [] };
const OUTPUT = '/images/debian-1';

test('an image without settings still has a release, which is empty', () => {
  assert.deepEqual(dibEnvironment(DISKIMAGE, OUTPUT), {
    DIB_RELEASE: '',
    DIB_IMAGE_NAME: 'debian',
    DIB_IMAGE_FILENAME: OUTPUT,
  });
});

test('settings become variables, and env-vars have the last word', () => {
  const diskimage = {
    ...DISKIMAGE,
    release: 12,
    elementsDir: '/etc/elements',
    scriptDir: '/etc/scripts',
    envVars: { DIB_GRUB_TIMEOUT: '0', DIB_IMAGE_NAME: 'other' },
  };
  assert.deepEqual(dibEnvironment(diskimage, OUTPUT), {
    DIB_RELEASE: '12',
    DIB_IMAGE_NAME: 'other',
    DIB_IMAGE_FILENAME: OUTPUT,
    ELEMENTS_PATH: '/etc/elements',
    NODEPOOL_SCRIPTDIR: '/etc/scripts',
    DIB_GRUB_TIMEOUT: '0',
  });
});

for (const value of [1, true, null, ['a']]) {
  test(`a variable whose value is ${JSON.stringify(value)} is refused`, () => {
    assert.throws(
      () => dibEnvironment({ ...DISKIMAGE, envVars: { DIB_CHECKSUM: value } }, OUTPUT),
      withCode('invalid-configuration', /disk image "debian": variable "DIB_CHECKSUM" .*quotes/),
    );
  });
}

test('a variable whose value holds a NUL is refused, and not shown', () => {
  assert.throws(
    () => dibEnvironment({ ...DISKIMAGE, envVars: { TOKEN: 'correct\0horse' } }, OUTPUT),
    withCode('invalid-configuration', /variable "TOKEN" in env-vars contains a NUL; remove it$/),
  );
});

for (const name of ['', 'A=B', 'A\0B']) {
  test(`a variable with the name ${JSON.stringify(name)} is refused`, () => {
    assert.throws(
      () => dibEnvironment({ ...DISKIMAGE, envVars: { [name]: 'value' } }, OUTPUT),
      withCode('invalid-configuration', /env-vars has a name that is empty or contains "=" or a NUL/),
    );
  });
}
