import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { loadCloudSettings } from '../../src/settings/load-cloud-settings.ts';
import { CREDENTIALS } from './cases/credentials.ts';
import { ENVIRONMENT } from './cases/environment.ts';
import { FINDING } from './cases/finding.ts';
import { MERGING } from './cases/merging.ts';
import { SERVICES } from './cases/services.ts';
import { VENDORS } from './cases/vendors.ts';
import { askOpenStackSdk, type SdkView, sdkView } from './openstacksdk.ts';
import { oneCloud, type SettingsCase } from './settings-case.ts';
import { type SettingsTree, settingsTree } from './settings-tree.ts';

const CASES = [...FINDING, ...MERGING, ...ENVIRONMENT, ...CREDENTIALS, ...SERVICES, ...VENDORS];

suite('settings in openstacksdk', async () => {
  const trees = await Promise.all(CASES.map((one) => settingsTree({ after }, one)));
  const { release, views } = askOpenStackSdk(CASES, trees);
  for (const [index, one] of CASES.entries()) {
    test(`cloud settings equal openstacksdk’s in the case "${one.title}"`, async () => {
      const view = await ours(one, trees[index] as SettingsTree);
      const sdk = views[index];
      if (one.differs === undefined || isBefore(release, one.differs.since))
        return assert.deepEqual(view, sdk);
      assert.ok(view, 'our settings must be valid in a case that differs');
      const differences = Object.entries(one.differs.ours);
      for (const [key, value] of differences) assert.deepEqual(view[key], value, key);
      if (sdk !== undefined) assert.deepEqual(without(view, differences), without(sdk, differences));
    });
  }
});

/** Compares releases, such as `0.101.0` and `2.0`. */
function isBefore(release: string, since = '0'): boolean {
  const options = { numeric: true };
  return release.localeCompare(since, 'en', options) < 0;
}

function without(view: SdkView, differences: readonly [string, unknown][]): SdkView {
  const keys = new Set(differences.map(([key]) => key));
  return Object.fromEntries(Object.entries(view).filter(([key]) => !keys.has(key)));
}

/** Undefined if the settings are invalid. */
async function ours(one: SettingsCase, { place }: SettingsTree): Promise<SdkView | undefined> {
  const { cloud, regionName, provider } = one;
  try {
    const request = { cloud, regionName, provider: { name: 'provider', ...provider } };
    return sdkView(await loadCloudSettings(request, place));
  } catch (error) {
    assert.ok(error instanceof CloudError && error.code === 'invalid-settings', String(error));
    return undefined;
  }
}

test('absent cloud settings have their defaults', async (t) => {
  const tree = await settingsTree(t, { files: { 'cwd/clouds.yaml': oneCloud() } });
  assert.deepEqual(await loadCloudSettings({ provider: { name: 'provider' } }, tree.place), {
    name: 'cloud',
    auth: {
      type: 'password',
      url: 'https://keystone.example:5000',
      user: { name: 'user' },
      password: 'cloud-password',
      scope: {},
    },
    image: { type: 'image', interface: 'public' },
    objectStore: { type: 'object-store', interface: 'public' },
    compute: { type: 'compute', interface: 'public' },
    network: { type: 'network', interface: 'public' },
    tls: { verify: true },
    apiTimeout: 60,
    imageFormat: 'qcow2',
    imageApiUseTasks: false,
    disableVendorAgent: {},
  });
  assert.deepEqual(tree.warnings, []);
});

test('the built-in profile vexxhost needs no download', async (t) => {
  const cloud = oneCloud('profile: vexxhost').replace(/ *auth_url.*\n/, '');
  const tree = await settingsTree(t, { files: { 'cwd/clouds.yaml': cloud } });
  const { auth, image } = await loadCloudSettings({ provider: { name: 'provider' } }, tree.place);
  assert.equal(auth.type === 'password' && auth.url, 'https://auth.vexxhost.net');
  assert.equal(image.regionName, 'ca-ymq-1');
});
