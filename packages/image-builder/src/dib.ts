import { join } from 'node:path';
import { BaseImageBuilder } from './base.ts';
import { temporaryDirectory } from './build/temporary-directory.ts';
import type { BuildContext } from './context.ts';
import { dibArguments } from './dib/arguments.ts';
import { dibEnvironment } from './dib/environment.ts';
import { progressOfLine } from './dib/phases.ts';
import type { ImageFormat } from './formats.ts';
import { withheldVariables } from './process/inherited-environment.ts';

/** Builds with diskimage-builder's `disk-image-create`, or with a command that takes the same arguments. */
export class DibBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[] = [
    'qcow2',
    'raw',
    'vhd',
    'vhdx',
    'vmdk',
    'vdi',
    'vpc',
    'tar',
    'tgz',
    'squashfs',
    'aci',
  ];

  protected override async createImage(context: BuildContext): Promise<void> {
    const { diskimage, directory, formats, imageId } = context;
    const output = join(directory, imageId);
    const env = dibEnvironment(diskimage, output);
    const args = dibArguments(diskimage, formats, output);
    const withheld = withheldVariables(context.environment);
    if (withheld.length > 0) context.log(`# variables that this build does not get: ${withheld.join(', ')}`);
    await context.run(diskimage.command ?? 'disk-image-create', args, {
      env: { ...env, TMP_DIR: await temporaryDirectory(context, env.TMP_DIR ?? context.environment.TMP_DIR) },
      onLine: (line) => {
        const done = progressOfLine(line);
        if (done !== undefined) context.progress(done, 100);
      },
    });
  }
}
