import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownVariables } from '../../src/build/command-environment.ts';
import { hiddenValues, hiddenVariables, isPublicVariable } from '../../src/process/hidden-values.ts';

test('a diskimage-builder variable is public unless its value is a secret, and so is a listed one', () => {
  for (const name of ['DIB_RELEASE', 'DIB_REPOREF_nodepool', 'PATH', 'LC_ALL', 'http_proxy', 'MIRROR_URL']) {
    assert.ok(isPublicVariable(name, ['MIRROR_*']), name);
  }
  for (const name of [
    'DIB_DEV_USER_PASSWORD',
    'DIB_RHSM_PASSWORD',
    'DIB_OURS',
    'NODEPOOL_KEY',
    'GITHUB_PAT',
  ]) {
    assert.ok(!isPublicVariable(name), name);
  }
});

test('values that occur in every log, and public variables’ values, are not hidden', () => {
  const environment = {
    DIB_RELEASE: 'bookworm',
    CODENAME: 'bookworm',
    FLAG: 'true',
    NUMBER: '1',
    SEARCH: '/usr/bin:/opt/tools/bin',
    UNSET: undefined,
    GITHUB_PAT: 'ghp_1',
    BASE64: '/kLx9fd+Aa3=',
  };
  const hidden = { GITHUB_PAT: 'ghp_1', BASE64: '/kLx9fd+Aa3=' };
  assert.deepEqual(hiddenVariables(environment), hidden);
  assert.deepEqual(hiddenVariables(environment, ['GITHUB_*', 'BASE64']), {});
});

test('credentials in public variables’ addresses are hidden', () => {
  const values = hiddenValues({
    https_proxy: 'http://user:pass-of-proxy@proxy:3128',
    DIB_REPOLOCATION_a: 'https://token-of-git@example.org/a',
    DIB_REPOLOCATION_b: 'git+ssh://builder@example.org/b',
    DIB_APT_SOURCES: 'deb https://u:pass-of-apt@one/ x\ndeb https://two/?sig=of-two&dist=y x',
  });
  for (const secret of ['pass-of-proxy', 'token-of-git', 'pass-of-apt', 'of-two']) {
    assert.ok(values.includes(secret), secret);
  }
  for (const text of ['user', 'builder', 'y']) assert.ok(!values.includes(text), text);
});

test('an attestation has all variables’ names, and public ones’ values without credentials', () => {
  const envVars = {
    DIB_RELEASE: 'bookworm',
    DIB_DISTRIBUTION_MIRROR: 'https://u:p@mirror/debian',
    DIB_IMAGE_SIZE: 'of-secure-yaml',
    FLAG: 'true',
    EMPTY: '',
  };
  const diskimage = { name: 'debian', formats: [], envVars, secrets: ['of-secure-yaml'] };
  assert.deepEqual(
    shownVariables(diskimage, (text) => text),
    {
      DIB_RELEASE: 'bookworm',
      DIB_DISTRIBUTION_MIRROR: 'https://***@mirror/debian',
      DIB_IMAGE_SIZE: '***',
      FLAG: '***',
      EMPTY: '',
    },
  );
});
