import type { Account } from '../../../../test/fixtures/openstack/account.ts';
import { openStack } from '../../../../test/fixtures/openstack/openstack.ts';
import type { CloudSettings } from '../../src/index.ts';

/** A project of its own in the real Keystone and Glance of this test run. */
export interface RealCloud {
  readonly account: Account;
  readonly settings: CloudSettings;
}

/** Makes a project for one test. */
export async function openRealCloud(): Promise<RealCloud> {
  const account = await (await openStack()).createAccount();
  return { account, settings: settingsOf(account) };
}

/** What `clouds.yaml` would say of an account. */
export function settingsOf({ authUrl, userName, password, projectName }: Account): CloudSettings {
  const domainName = 'Default';
  return {
    name: 'real',
    auth: {
      type: 'password',
      url: authUrl,
      user: { name: userName, domainName },
      password,
      scope: { project: { name: projectName, domainName } },
    },
    image: { type: 'image', interface: 'public' },
    objectStore: { type: 'object-store', interface: 'public' },
    tls: { verify: true },
    apiTimeout: 60,
    imageFormat: 'qcow2',
    imageApiUseTasks: false,
    disableVendorAgent: {},
  };
}
