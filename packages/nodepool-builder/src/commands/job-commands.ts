import { randomBytes } from 'node:crypto';
import { checkImageId, JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { Command } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { functionName } from '../daemon/functions.ts';
import type { Modules } from '../modules.ts';
import { CommandError, choiceOf } from './command-error.ts';
import { followJob } from './follow-job.ts';
import { configOption } from './options.ts';

/** `image-build NAME`: prints the id of the new image. */
export function registerImageBuild(program: Command, modules: Modules): void {
  program
    .command('image-build')
    .summary('have a builder build an image')
    .description(
      'Submits an image-build job, follows the build, and prints the id of the new image. The builder keeps the image; ' +
        'image-upload uploads it. "rebuild" leaves both to the manager; "build" builds here, without a builder.',
    )
    .argument('<name>', 'name of the disk image, as in diskimages')
    .addOption(configOption())
    .option('--image-id <id>', 'id of the new image (default: the name, the time and four random characters)')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder image-build debian -c nodepool.yaml')
    .action(async (name: string, options: { config: string; imageId?: string }) => {
      const imageId = options.imageId ?? newImageId(name, new Date());
      checkImageId(imageId);
      const { configuration } = await loadConfiguration(options.config, { modules });
      await followJob(configuration, functionName('image-build', name), { 'image-id': imageId });
      console.log(imageId);
    });
}

/** An id for an image that is built now: `debian-20161118140211-9f3c`. */
export function newImageId(name: string, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  return `${name.replaceAll(/[^\w.-]/g, '_')}-${time}-${randomBytes(2).toString('hex')}`;
}

/** `image-upload IMAGE-ID --provider P`: prints the provider's id of the image. */
export function registerImageUpload(program: Command, modules: Modules): void {
  program
    .command('image-upload')
    .summary('have the builder that holds an image upload it')
    .description(
      'Submits an image-upload job to the builder that holds the image, and prints its external-id in the provider. ' +
        '"upload" uploads a file from here, without a builder.',
    )
    .argument('<image-id>', 'id of the image, as image-list shows it')
    .requiredOption('--provider <name>', 'name of the provider')
    .option('--image-name <name>', 'name under providers[].images (needed only if the provider has several)')
    .addOption(configOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ nodepool-builder image-upload debian-20161118140211-9f3c --provider local -c nodepool.yaml',
    )
    .action(async (imageId: string, options: { config: string; provider: string; imageName?: string }) => {
      const { configuration } = await loadConfiguration(options.config, { modules });
      const imageName = options.imageName ?? onlyImageName(configuration, options.provider);
      const result = await followJob(configuration, functionName('image-upload', imageId), {
        provider: options.provider,
        'image-name': imageName,
      });
      console.log(UPLOAD_RESULT.parse(result.toString())['external-id']);
    });
}

const UPLOAD_RESULT = new JsonReader({
  type: 'object',
  required: ['external-id'],
  properties: { 'external-id': { type: 'string' } },
});

function onlyImageName(configuration: Configuration, providerName: string): string {
  const provider = configuration.providers.find(({ name }) => name === providerName);
  if (provider === undefined) {
    const names = configuration.providers.map(({ name }) => name);
    throw new CommandError(`provider "${providerName}" is not in ${configuration.file}; ${choiceOf(names)}`);
  }
  const [first, ...others] = provider.images.map(({ name }) => name);
  if (first === undefined)
    throw new CommandError(`provider "${providerName}" has no images; add one to its images`);
  if (others.length > 0) {
    throw new CommandError(
      `provider "${providerName}" has several images; choose with --image-name: ${[first, ...others].join(', ')}`,
    );
  }
  return first;
}

/** `image-delete IMAGE-ID`. */
export function registerImageDelete(program: Command, modules: Modules): void {
  program
    .command('image-delete')
    .summary('have the builder that holds an image delete its files')
    .description(
      'Submits an image-delete job to the builder that holds the image, which deletes its files. Uploads of it stay ' +
        'in their providers. "dib-image-delete" has the manager delete both.',
    )
    .argument('<image-id>', 'id of the image, as image-list shows it')
    .addOption(configOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ nodepool-builder image-delete debian-20161118140211-9f3c -c nodepool.yaml',
    )
    .action(async (imageId: string, options: { config: string }) => {
      const { configuration } = await loadConfiguration(options.config, { modules });
      await followJob(configuration, functionName('image-delete', imageId), '');
    });
}
