/** The builder `scanned-dib`: diskimage-builder, followed by a scan that can keep an image from being published. */
import { type BuildContext, DIB_MODULE, DibBuilder } from '@nodepool-builder/image-builder';

class ScannedDibBuilder extends DibBuilder {
  protected override async createImage(context: BuildContext): Promise<void> {
    await super.createImage(context);
    for (const format of context.formats) await context.run('scan-image', [context.outputPath(format)]);
  }
}

const module: typeof DIB_MODULE = {
  ...DIB_MODULE,
  type: 'scanned-dib',
  create: (diskimage, settings) => new ScannedDibBuilder(diskimage, settings),
};

export default module;
