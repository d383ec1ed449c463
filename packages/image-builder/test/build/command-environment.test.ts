import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { checkedVariables } from '../../src/build/command-environment.ts';

const DISKIMAGE = { name: 'debian', formats: [] };

for (const value of [1, true, null, ['a']]) {
  test(`a variable whose value is ${JSON.stringify(value)} is rejected`, () => {
    assert.throws(
      () => checkedVariables({ ...DISKIMAGE, envVars: { DIB_CHECKSUM: value } }),
      withCode('invalid-configuration', /disk image "debian": variable "DIB_CHECKSUM" .*quotes/),
    );
  });
}

test('a variable whose value contains a NUL is rejected, and not shown', () => {
  assert.throws(
    () => checkedVariables({ ...DISKIMAGE, envVars: { TOKEN: 'correct\0horse' } }),
    withCode('invalid-configuration', /variable "TOKEN" in env-vars contains a NUL; remove it$/),
  );
});

for (const name of ['', 'A=B', 'A\0B']) {
  test(`a variable with the name ${JSON.stringify(name)} is rejected`, () => {
    assert.throws(
      () => checkedVariables({ ...DISKIMAGE, envVars: { [name]: 'value' } }),
      withCode('invalid-configuration', /env-vars has a name that is empty or contains "=" or a NUL/),
    );
  });
}
