/** The real nodepool-builder with a builder `sealed`, whose images show whether they are complete. */
import { BaseImageBuilder, type BuildContext } from '@nodepool-builder/image-builder';
import { main } from 'nodepool-builder';
import { writeSealedFile } from './sealed-file.ts';

/** Bytes of an image. */
const SMALLEST = 256 * 1024;
const LARGEST = 4 * 1024 * 1024;

class SealedFileBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ outputPath }: BuildContext): Promise<void> {
    const blocks = Math.floor((SMALLEST + Math.random() * (LARGEST - SMALLEST)) / 512);
    await writeSealedFile(outputPath('raw'), blocks * 512);
  }
}

process.exitCode = await main(process.argv.slice(2), { builders: { sealed: SealedFileBuilder } });
