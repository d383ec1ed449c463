import type { TestContext } from 'node:test';
import type { FaultProxy } from '../../../test/fixtures/fault-proxy/fault-proxy.ts';
import type { Account, GlanceImage } from '../../../test/fixtures/openstack/account.ts';
import { faultyOpenStack } from '../../../test/fixtures/openstack/faulty-openstack.ts';
import { openStack } from '../../../test/fixtures/openstack/openstack.ts';
import type { CloudSettings } from '../src/index.ts';
import { settingsWith } from './fixtures/cloud-settings.ts';

/** A project in a real Keystone and Glance, both behind proxies that inject faults. */
export interface RealCloud {
  readonly settings: CloudSettings;
  readonly keystone: FaultProxy;
  readonly glance: FaultProxy;
  /** Images of the project, without the proxies. */
  readonly images: () => Promise<GlanceImage[]>;
  /** Account of the project, without the proxies. */
  readonly account: Account;
  /** Administrator, without the proxies. */
  readonly admin: Account;
}

/** Services that all tests in a file share. */
const running = openStack();

/** Creates a project for one test. */
export async function openRealCloud(t: TestContext): Promise<RealCloud> {
  const cloud = await running;
  const account = await cloud.createAccount();
  const faulty = await faultyOpenStack(account);
  t.after(() => faulty.close());
  const { account: proxied, keystone, glance } = faulty;
  const { authUrl: url, userName: name, password, projectName } = proxied;
  const domain = { domainName: 'Default' };
  const settings = settingsWith({
    type: 'password',
    url,
    user: { name, ...domain },
    password,
    scope: { project: { name: projectName, ...domain } },
  });
  return { settings, keystone, glance, images: () => account.images(), account, admin: cloud.admin };
}
