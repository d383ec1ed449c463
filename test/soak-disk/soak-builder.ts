/** The real nodepool-builder with a builder `sealed`, whose images reveal whether they are complete. */
import { BaseImageBuilder, type BuildContext } from '@nodepool-builder/image-builder';
import { main } from 'nodepool-builder';
import { writeSealedFile } from './sealed-file.ts';

/** Size of an image in bytes. */
const MIN_SIZE = 256 * 1024;
const MAX_SIZE = 4 * 1024 * 1024;

class SealedFileBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ outputPath }: BuildContext): Promise<void> {
    const blocks = Math.floor((MIN_SIZE + Math.random() * (MAX_SIZE - MIN_SIZE)) / 512);
    await writeSealedFile(outputPath('raw'), blocks * 512);
  }
}

process.exitCode = await main(process.argv.slice(2), { builders: { sealed: SealedFileBuilder } });
