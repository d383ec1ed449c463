import { join } from 'node:path';
import { BaseImageBuilder } from './base.ts';
import { temporaryDirectory } from './build/temporary-directory.ts';
import type { BuildContext } from './context.ts';
import { dibArguments } from './dib/arguments.ts';
import { DIB_SETTINGS, type DibSettings } from './dib/dib-settings.ts';
import { dibEnvironment } from './dib/environment.ts';
import { progressOfLine } from './dib/phases.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import type { BuilderModule } from './modules.ts';
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
  readonly #settings: DibSettings;

  constructor(diskimage: DiskImage, settings: DibSettings = {}) {
    super(diskimage);
    this.#settings = settings;
  }

  protected override async createImage(context: BuildContext): Promise<void> {
    const { diskimage, directory, formats, imageId } = context;
    const output = join(directory, imageId);
    const env = dibEnvironment(diskimage, output);
    const args = dibArguments(this.#settings, formats, output);
    const withheld = withheldVariables(context.environment);
    if (withheld.length > 0) context.log(`# variables that this build does not get: ${withheld.join(', ')}`);
    await context.run(commandOf(this.#settings), args, {
      env: { ...env, TMP_DIR: await temporaryDirectory(context, env.TMP_DIR ?? context.environment.TMP_DIR) },
      onLine: (line) => {
        const done = progressOfLine(line);
        if (done !== undefined) context.progress(done, 100);
      },
    });
  }
}

/** Builder `dib`: diskimage-builder. */
export const DIB: BuilderModule<typeof DIB_SETTINGS, DibSettings> = {
  type: 'dib',
  description: 'with diskimage-builder',
  settings: DIB_SETTINGS,
  programs: (settings) => [
    { pointer: settings['dib-cmd'] === undefined ? '' : '/dib-cmd', program: commandOf(settings) },
  ],
  content: (settings) => [
    settings.elements ?? '',
    settings['dib-cmd'],
    ...(settings['qemu-img-options'] === undefined ? [] : [settings['qemu-img-options']]),
  ],
  create: (diskimage, settings) => new DibBuilder(diskimage, settings),
};

function commandOf(settings: DibSettings): string {
  return settings['dib-cmd'] ?? 'disk-image-create';
}
