import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { InstanceAddress } from '@nodepool-builder/image-builder';
import type { AwsDoubleOptions, Region } from '../../../../test/doubles/aws/region.ts';
import { AwsInstanceProvider, type AwsInstanceProviderOptions } from '../../src/index.ts';
import { type AwsFixture, awsFixture, entryOf } from '../aws-fixture.ts';

/** A public key without a private key. */
export const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnHZBJyMWbIEBXFHYJFxBsbTRQOtVpTyeJ6MRXjZtXf test';

/** A double with the base image `base`, and instance providers. */
export interface InstanceFixture extends AwsFixture {
  readonly openInstances: (
    settings?: Parameters<typeof entryOf>[0],
    options?: Partial<AwsInstanceProviderOptions>,
  ) => AwsInstanceProvider;
}

export async function instanceFixture(
  t: TestContext,
  options: Partial<AwsDoubleOptions> = {},
): Promise<InstanceFixture> {
  const fixture = await awsFixture(t, options);
  addImage(fixture.double.region(), 'base');
  return {
    ...fixture,
    openInstances(settings = {}, others = {}) {
      const provider = new AwsInstanceProvider({
        entry: entryOf(settings),
        owner: 'builder',
        session: { ...fixture.session, attempts: 3 },
        directory: join(fixture.directory, 'instances'),
        interval: 0.02,
        logger: fixture.logger,
        ...others,
      });
      t.after(() => provider.close());
      return provider;
    },
  };
}

/** Adds an AMI of this account with an empty disk. @returns its id */
export function addImage(
  region: Region,
  name: string,
  architecture = 'x86_64',
  platform?: 'Windows',
  volumeSize = 1,
): string {
  const snapshot = region.snapshots.add({
    volumeSize,
    state: 'completed',
    pendingLists: 0,
    isComplete: true,
    blocks: new Map(),
    sharedWith: new Set(),
  });
  const image = region.images.add({
    name,
    architecture,
    platform,
    registration: {
      RootDeviceName: '/dev/sda1',
      BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { DeleteOnTermination: false } }],
    },
    snapshots: [snapshot.id],
    owner: region.options.account,
    isPublic: false,
    state: 'available',
    pendingLists: 0,
    sharedWith: new Set(),
  });
  return image.id;
}

/** Runs a command line in a machine of the double. */
export async function runThere({ host, port }: InstanceAddress, command: string): Promise<string> {
  const socket = connect(port, host);
  await once(socket, 'connect');
  socket.write(`${command}\n`);
  return await text(socket);
}
