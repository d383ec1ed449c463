// Not a unit test: it starts qemu-img.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { virtualSize } from '../../src/formats/disk-information.ts';

test('an error says what to install if qemu-img is missing', async (t) => {
  const { PATH } = process.env;
  t.after(() => (process.env.PATH = PATH));
  process.env.PATH = '/nonexistent';
  await assert.rejects(
    virtualSize({ format: 'qcow2', path: '/nonexistent/image.qcow2' }),
    withCode('command-not-found', /install qemu-utils/),
  );
});
