import { writeFile } from 'node:fs/promises';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { CloudInstance, type MachineCloud } from '@nodepool-builder/image-builder/internal';
import { awsCode } from '../aws-error.ts';
import { captureInstance, findCaptures } from './capture.ts';
import { addressOf, type Ec2Instance, getInstance, isGone, stateOf, stateReason } from './ec2-instance.ts';
import { launchInstance } from './launch-instance.ts';
import { findLaunches, type InstanceSite, removeLaunch } from './launches.ts';
import { readPassword } from './windows-password.ts';

export const EC2_MACHINES: Omit<MachineCloud<InstanceSite, Ec2Instance>, 'open'> = {
  launch: launchInstance,
  findLaunches,
  remove: removeLaunch,
  read: ({ region }, id, signal) => getInstance(region, id, signal),
  stateOf,
  hostOf: (instance, { entry }) => addressOf(instance, entry),
  describeState(instance) {
    const reason = `it is ${instance.State?.Name}${stateReason(instance)}`;
    return isGone(instance) ? reason : `${reason}; see its console log`;
  },
  powerOff: ({ region }, id, signal) => region.ec2(signal).stopInstances({ InstanceIds: [id] }),
  async readConsole({ region }, InstanceId, signal) {
    // Only Nitro instance types have the latest output.
    const read = async (Latest: boolean): Promise<string> => {
      const input = { InstanceId, ...(Latest && { Latest }) };
      const { Output: output = '' } = await region.ec2(signal).getConsoleOutput(input);
      return Buffer.from(output, 'base64').toString();
    };
    return await read(true).catch(async (error: unknown) => {
      if (awsCode(error) !== 'UnsupportedOperation') throw error;
      return await read(false);
    });
  },
  capture: captureInstance,
  findCaptures,
};

/** An instance in EC2, or the key pair of a launch without an instance. */
export class AwsInstance extends CloudInstance<InstanceSite, Ec2Instance> {
  readonly screenshotType = 'jpg';

  /**
   * Returns the administrator's password. Undefined for an operating system other than Windows, and on a host other
   * than that of the launch.
   */
  async password(options: OperationOptions = {}): Promise<string | undefined> {
    return await this.run(options, async (site, signal) =>
      readPassword(site, this.launch.name, this.existingId('has no password'), signal),
    );
  }

  async screenshot(path: string, options: OperationOptions = {}): Promise<void> {
    await this.run(options, async ({ region }, signal) => {
      const InstanceId = this.existingId('has no display');
      const { ImageData: data = '' } = await region.ec2(signal).getConsoleScreenshot({ InstanceId });
      await writeFile(path, Buffer.from(data, 'base64'));
    });
  }
}
