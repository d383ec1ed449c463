import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { ImageError, type ImageErrorCode, type InstanceAddress } from '@nodepool-builder/image-builder';
import { NovaDouble } from '../../../../test/doubles/openstack/nova-double.ts';
import { type FaultProxy, startFaultProxy } from '../../../../test/fixtures/fault-proxy/fault-proxy.ts';
import type { Account } from '../../../../test/fixtures/openstack/account.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { OpenStackInstanceProvider, type OpenStackInstanceProviderOptions } from '../../src/index.ts';
import { SILENT } from '../fixtures/silent-logger.ts';
import { openRealCloud, type RealCloud } from '../real-cloud.ts';

/** A public key without a private key. */
export const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnHZBJyMWbIEBXFHYJFxBsbTRQOtVpTyeJ6MRXjZtXf test';

/** A project in a real Keystone and Glance, with a Nova and Neutron double next to them. */
export interface NovaCloud extends RealCloud {
  readonly nova: NovaDouble;
  /** Proxy in front of the double. */
  readonly faults: FaultProxy;
  readonly open: (options?: Partial<OpenStackInstanceProviderOptions>) => OpenStackInstanceProvider;
}

/** For `assert.rejects`: checks for an {@link ImageError} with this code and words in its message. */
export function fails(code: ImageErrorCode, words: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ImageError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  };
}

/** Creates a cloud for one test, with the base image `base`. */
export async function openNovaCloud(t: TestContext): Promise<NovaCloud> {
  const cloud = await openRealCloud(t);
  const nova = await NovaDouble.start(cloud.account.imageUrl);
  undoAfter(t, () => nova[Symbol.asyncDispose]());
  const faults = await startFaultProxy(nova.endpoint);
  undoAfter(t, () => faults.close());
  await createImage(cloud.account, 'base');
  const service = { interface: 'public', endpointOverride: faults.url };
  const settings = {
    ...cloud.settings,
    compute: { ...service, type: 'compute' },
    network: { ...service, type: 'network' },
  };
  const open = (options: Partial<OpenStackInstanceProviderOptions> = {}): OpenStackInstanceProvider => {
    const provider = new OpenStackInstanceProvider({
      name: 'cloud',
      owner: 'builder',
      settings: async () => settings,
      logger: SILENT,
      session: { retry: { firstDelay: 0.001, attempts: 3 } },
      retry: { attempts: 3, delay: 0.001 },
      ...options,
    });
    undoAfter(t, () => provider.close());
    return provider;
  };
  return { ...cloud, settings, nova, faults, open };
}

/** Uploads a disk without files to Glance. */
export async function createImage(
  account: Account,
  name: string,
  properties: Readonly<Record<string, string>> = {},
): Promise<string> {
  const glance = await account.glance();
  const image = { ...properties, name, disk_format: 'raw', container_format: 'bare' };
  const { id } = await glance.request<{ id: string }>('POST', '/images', image);
  const headers = { 'content-type': 'application/octet-stream' };
  await glance.request('PUT', `/images/${id}/file`, {}, headers);
  return id;
}

/** Runs a command line in a machine of the double. */
export async function runThere({ host, port }: InstanceAddress, command: string): Promise<string> {
  const socket = connect(port, host);
  await once(socket, 'connect');
  socket.write(`${command}\n`);
  return await text(socket);
}
