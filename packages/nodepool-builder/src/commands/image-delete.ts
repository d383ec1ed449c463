import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import { functionName } from '../daemon/functions.ts';
import { followJob } from './follow-job.ts';
import { configOption } from './options.ts';

/** `image-delete IMAGE-ID`. */
export function registerImageDelete(program: Command, builders: readonly string[]): void {
  program
    .command('image-delete')
    .summary('delete a local image')
    .description('Has the builder that holds an image delete its files. What was uploaded stays where it is.')
    .argument('<image-id>', 'id of the image, as image-list shows it')
    .addOption(configOption())
    .action(async (imageId: string, options: { config: string }) => {
      const { configuration } = await loadConfiguration(options.config, { builders });
      await followJob(configuration, functionName('image-delete', imageId), '');
    });
}
