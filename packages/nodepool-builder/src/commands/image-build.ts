import { randomBytes } from 'node:crypto';
import { checkImageId } from '@nodepool-builder/image-builder';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import { functionName } from '../daemon/functions.ts';
import { followJob } from './follow-job.ts';
import { configOption } from './options.ts';

/** `image-build NAME`: prints the id of the new image. */
export function registerImageBuild(program: Command, builders: readonly string[]): void {
  program
    .command('image-build')
    .summary('build an image')
    .description('Has a builder make an image, follows the build, and prints the id of the new image.')
    .argument('<name>', 'name of the disk image, as diskimages has it')
    .addOption(configOption())
    .option('--image-id <id>', 'id of the new image (default: the name, the time and four random characters)')
    .action(async (name: string, options: { config: string; imageId?: string }) => {
      const imageId = options.imageId ?? newImageId(name, new Date());
      checkImageId(imageId);
      const { configuration } = await loadConfiguration(options.config, { builders });
      await followJob(configuration, functionName('image-build', name), { 'image-id': imageId });
      console.log(imageId);
    });
}

/** `debian-20161118140211-9f3c`: says what it is and when it was asked for; two at once still differ. */
function newImageId(name: string, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  return `${name.replaceAll(/[^\w.-]/g, '_')}-${time}-${randomBytes(2).toString('hex')}`;
}
