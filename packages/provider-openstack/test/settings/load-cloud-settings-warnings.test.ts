import assert from 'node:assert/strict';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { loadCloudSettings } from '../../src/settings/load-cloud-settings.ts';
import { oneCloud, type SettingsCase } from './settings-case.ts';
import { settingsTree } from './settings-tree.ts';

const SECRET = 'hunter2';

interface WarningCase extends Pick<SettingsCase, 'title' | 'files' | 'env'> {
  /** `$TREE` is the directory of the files. */
  readonly warning: string;
}

/** The site directory has a valid cloud, so that all settings are found. */
const CASES: readonly WarningCase[] = [
  {
    title: 'YAML with an unknown alias',
    files: { 'cwd/clouds.yaml': `clouds:\n  cloud: {auth: {password: *${SECRET}}}` },
    warning: '$TREE/cwd/clouds.yaml is skipped: it is not valid YAML at line 2, column 29',
  },
  {
    title: 'YAML in two documents',
    files: { 'cwd/clouds.yaml': `clouds: {}\n---\npassword: ${SECRET}` },
    warning: '$TREE/cwd/clouds.yaml is skipped: it is not a mapping',
  },
  {
    title: 'incomplete JSON',
    files: { 'cwd/clouds.json': `{"clouds": {"password": ${SECRET}` },
    warning: '$TREE/cwd/clouds.json is skipped: it is not valid JSON',
  },
  {
    title: 'a list',
    files: { 'cwd/clouds.yaml': `- ${SECRET}` },
    warning: '$TREE/cwd/clouds.yaml is skipped: it is not a mapping',
  },
  {
    title: 'a missing file in a variable',
    env: { OS_CLIENT_CONFIG_FILE: '$TREE/none.yaml' },
    warning: '$TREE/none.yaml does not exist, but OS_CLIENT_CONFIG_FILE names it',
  },
  {
    title: 'secrets without "clouds"',
    files: { 'cwd/secure.yaml': `cloud: {auth: {password: ${SECRET}}}` },
    warning: '$TREE/cwd/secure.yaml has no "clouds": it is ignored',
  },
  {
    title: 'an unknown profile',
    files: { 'site/openstack/clouds.yaml': oneCloud('profile: nobody') },
    warning:
      'provider "p", cloud "cloud" of $TREE/site/openstack/clouds.yaml: the vendor profile "nobody" is unknown and ' +
      'ignored',
  },
  {
    title: 'a deprecated profile',
    files: { 'site/openstack/clouds.yaml': oneCloud('profile: dreamhost') },
    warning:
      'provider "p", cloud "cloud" of $TREE/site/openstack/clouds.yaml: its profile is deprecated: ' +
      'use the profile dreamcompute instead',
  },
  {
    title: 'certificates without verification',
    files: { 'site/openstack/clouds.yaml': oneCloud('insecure: true', 'cacert: /ca.pem') },
    warning:
      'provider "p", cloud "cloud" of $TREE/site/openstack/clouds.yaml: cacert has no effect because ' +
      'certificates are not verified',
  },
];

const ANOTHER_USER = { skip: process.geteuid?.() !== 0 && 'needs root' };

suite('settings with a warning', () => {
  test(
    'a cloud file in a working directory of another user is skipped with a warning',
    ANOTHER_USER,
    async (t) => {
      const files = {
        'site/openstack/clouds.yaml': oneCloud(),
        'cwd/clouds.yaml': oneCloud('insecure: true'),
      };
      const tree = await settingsTree(t, { files });
      await chown(tree.place.cwd, 65534, 65534);
      await loadCloudSettings({ provider: { name: 'p' } }, tree.place);
      const skipped = `${tree.root}/cwd/clouds.yaml is skipped: ${tree.root}/cwd belongs to user 65534`;
      assert.deepEqual(tree.warnings, [skipped]);
    },
  );

  for (const { title, files, env, warning } of CASES) {
    test(`cloud settings cause a warning: ${title}`, async (t) => {
      const tree = await settingsTree(t, {
        files: { 'site/openstack/clouds.yaml': oneCloud(), ...files },
        ...(env === undefined ? {} : { env }),
      });
      const { auth } = await loadCloudSettings({ provider: { name: 'p' } }, tree.place);
      assert.equal(auth.type === 'password' && auth.password, 'cloud-password');
      assert.deepEqual(tree.warnings, [warning.replaceAll('$TREE', tree.root)]);
    });
  }

  test('a cloud file that cannot be read causes a warning', async (t) => {
    const tree = await settingsTree(t, { files: { 'site/openstack/clouds.yaml': oneCloud() } });
    const file = join(tree.place.cwd, 'clouds.yaml');
    await mkdir(file);
    await loadCloudSettings({ provider: { name: 'p' } }, tree.place);
    assert.deepEqual(tree.warnings, [`${file} is skipped: it cannot be read (EISDIR)`]);
  });
});
