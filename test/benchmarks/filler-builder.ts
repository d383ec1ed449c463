/** A nodepool-builder whose builds quickly write large images: `options.bytes` of data without zero bytes. */
import { BaseImageBuilder, type BuildContext } from '@nodepool-builder/image-builder';
import { main } from 'nodepool-builder';

class FillerBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ run, outputPath, diskimage }: BuildContext): Promise<void> {
    const command = 'yes "a line of which nothing is zero" | head -c "$1" >"$2"';
    await run('sh', ['-c', command, 'sh', String(diskimage.options?.bytes), outputPath('raw')]);
  }
}

process.exitCode = await main(process.argv.slice(2), { builders: { filler: FillerBuilder } });
