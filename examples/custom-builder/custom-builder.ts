#!/usr/bin/env node
/** A custom builder for file system images of a directory. Run this program in place of nodepool-builder. */
import { BaseImageBuilder, type BuildContext } from '@nodepool-builder/image-builder';
import { main } from 'nodepool-builder';

class DirectoryTreeBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ run, outputPath, diskimage }: BuildContext): Promise<void> {
    const image = outputPath('raw');
    await run('truncate', ['--size=64M', image]);
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', String(diskimage.options?.tree), image]);
  }
}

process.exitCode = await main(process.argv.slice(2), {
  builders: { 'directory-tree': DirectoryTreeBuilder },
});
